"""More samples of unscale-every-micro-step."""

GOOD = (
    """\
import torch

def train(model, loader, optimizer, scaler, use_amp):
    for x, y in loader:
        scaler.scale(model(x, y)).backward()
        scaler.unscale_(optimizer)
        if use_amp:
            scaler.step(optimizer)
            scaler.update()
""",
    """\
import torch

def train(model, loader, optimizer, scaler, accumulate):
    for i, (x, y) in enumerate(loader):
        scaler.scale(model(x, y)).backward()
        if (i + 1) % accumulate:
            continue
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
""",
)
