"""More samples of synchronize-in-step-loop."""

GOOD = (
    """\
import torch

def train(model, loader, opt):
    for step, x in enumerate(loader):
        loss = model(x.cuda()).mean()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            torch.cuda.synchronize()
""",
    """\
import torch

def train(model, loader, opt):
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
""",
    """\
import torch

def benchmark_step(model, x, opt):
    for _ in range(100):
        loss = model(x).mean()
        loss.backward()
        opt.step()
        torch.cuda.synchronize()
""",
)
