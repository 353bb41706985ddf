import torch
import torch.nn as nn
import torch.nn.functional as F


def p_losses(model, x0, alphas_bar):
    t = torch.randint(0, 1000, (x0.shape[0],), device=x0.device)
    noise = torch.randn_like(x0)
    a = alphas_bar[t].view(-1, 1, 1, 1)
    x_t = a.sqrt() * x0 + (1 - a).sqrt() * noise
    return F.mse_loss(model(x_t, t), noise)


def train(model: nn.Module, loader, steps):
    model = model.cuda()
    betas = torch.linspace(1e-4, 0.02, 1000, device="cuda")
    alphas_bar = torch.cumprod(1 - betas, 0)
    opt = torch.optim.Adam(model.parameters(), lr=2e-4)
    for step, (x0, _) in zip(range(steps), loader):
        loss = p_losses(model, x0.cuda(non_blocking=True), alphas_bar)
        opt.zero_grad()
        loss.backward()
        opt.step()
