"""More samples of needless-retain-graph."""

GOOD = (
    """\
import torch

def train(g, d, loader, optimizer):
    for x in loader:
        out = g(x)
        a, b = d(out), out.mean()
        a.backward(retain_graph=True)
        b.backward()
        optimizer.step()
""",
    """\
import torch

def grads(losses, model):
    for loss in losses:
        loss.backward(retain_graph=True)
""",
    """\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x, y)
        loss.backward(retain_graph=True)
        norm = torch.autograd.grad(loss, model.parameters())
        optimizer.step()
""",
    """\
import torch

def jacobian(y, x):
    total = y.sum()
    for i in range(10):
        part = total[i]
        part.backward(retain_graph=True)
""",
)
