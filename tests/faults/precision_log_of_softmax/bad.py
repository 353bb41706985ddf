import torch
import torch.nn.functional as F


def distill_loss(student, teacher, T=2.0):
    log_p = torch.log(F.softmax(student / T, dim=-1))  # FAULT: log-of-softmax
    q = F.softmax(teacher / T, dim=-1)
    return F.kl_div(log_p, q, reduction="batchmean") * T * T


def entropy(probs):
    return -(probs * torch.log(probs.clamp_min(1e-9))).sum(-1)


def step(student, teacher, x, y, opt, alpha=0.5):
    with torch.no_grad():
        t = teacher(x)
    s = student(x)
    loss = alpha * distill_loss(s, t) + (1 - alpha) * F.cross_entropy(s, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach(), entropy(F.softmax(t, -1)).mean()
