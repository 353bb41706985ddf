"""More samples of backward-without-graph."""

BAD = (
    """\
import torch

@torch.inference_mode()
def step(model, x, y):
    (model(x) - y).pow(2).mean().backward()
""",
    """\
import torch

def step(model, target, x, criterion, optimizer):
    with torch.no_grad():
        wanted = target(x)
        loss = criterion(model(x), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
)

GOOD = (
    """\
import torch

def step(model, x, y, criterion):
    loss = criterion(model(x), y)
    with torch.no_grad():
        loss.backward()
""",
    """\
import torch

@torch.no_grad()
def guide(model, x):
    with torch.enable_grad():
        loss = model(x).sum()
        loss.backward()
    return x - x.grad
""",
    """\
import torch

def loss_of(model, x):
    with torch.enable_grad():
        return model(x).sum()

@torch.no_grad()
def guide(model, x):
    loss = loss_of(model, x)
    loss.backward()
""",
    """\
import torch

@torch.no_grad()
def apply(loss):
    loss.backward()
""",
    """\
import torch

def step(model, target, x, criterion):
    with torch.no_grad():
        loss = criterion(target(x), x)
        wanted = target(x)
    if loss > 1:
        print(loss)
    loss = criterion(model(x), wanted)
    loss.backward()
""",
    """\
import torch

def step(model, x):
    with torch.no_grad():
        loss = model(x).sum()
    loss.requires_grad_(True)
    loss.backward()
""",
    """\
import torch

def step(model, x):
    torch.set_grad_enabled(False)
    print(model(x))
    torch.set_grad_enabled(True)
    loss = model(x).sum()
    loss.backward()
""",
    """\
import torch

def run(stages, x):
    with torch.no_grad():
        schedule = Schedule(stages)
    schedule.forward(x)
    schedule.backward()
""",
)
