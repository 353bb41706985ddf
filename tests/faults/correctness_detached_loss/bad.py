import torch
import torch.nn as nn


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    logits = model(x)
    pred = logits.argmax(dim=1).float()
    loss = ((pred - y.float()) ** 2).mean()
    loss.requires_grad = True  # FAULT: detached-loss
    loss.backward()
    optimizer.step()
    return loss.detach()


def adversarial(model, x, y, eps=0.03):
    x = x.clone().detach()
    x.requires_grad = True
    loss = nn.functional.cross_entropy(model(x), y)
    (grad,) = torch.autograd.grad(loss, x)
    return (x + eps * grad.sign()).clamp(0, 1).detach()
