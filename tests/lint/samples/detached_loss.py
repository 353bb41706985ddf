"""More samples of detached-loss."""

BAD = (
    """\
import torch

def step(model, x, y, optimizer):
    loss = sum((model(x) - y).tolist())
    loss = torch.tensor(loss, requires_grad=True)
    loss.backward()
    optimizer.step()
""",
)

GOOD = (
    """\
import torch

def saliency(model, x):
    x.requires_grad_()
    loss = model(x).sum()
    loss.backward()
    return x.grad
""",
    """\
import torch

def demo():
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward()
    return x.grad
""",
    """\
import torch

def step(loss):
    total = loss * 2
    total.backward()
    loss = torch.tensor(0.0, requires_grad=True)
    return loss
""",
)
