import torch
import torch.nn.functional as F


def train(model, loader, opt, device="cuda", check_every=100):
    model.train()
    bad = torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = F.cross_entropy(model(x), y)
        bad += torch.isnan(loss)
        if step % check_every == 0 and bad > 0:
            raise RuntimeError("loss is nan")
        if loss is None:
            continue
        if x.shape[0] == 0 or x.dim() != 4:
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
    return bad
