"""More samples of profiler-without-schedule."""

GOOD = (
    """\
import torch
from torch.profiler import profile, schedule

def train(model, loader, opt):
    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:
        for x in loader:
            loss = model(x).mean()
            loss.backward()
            opt.step()
            prof.step()
""",
    """\
import torch
from torch.profiler import profile

def train(model, loader, opt):
    with profile() as prof:
        for step, x in enumerate(loader):
            loss = model(x).mean()
            loss.backward()
            opt.step()
            if step == 10:
                break
""",
    """\
import torch
from torch.profiler import profile

def one(model, x):
    with profile() as prof:
        model(x).mean().backward()
""",
)
