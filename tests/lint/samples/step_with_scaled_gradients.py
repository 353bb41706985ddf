"""More samples of step-with-scaled-gradients."""

GOOD = (
    """\
import torch

def train(model, x, optimizer, scaler):
    scaler.scale(model(x)).backward()
    scaler.step(optimizer)
    scaler.update()
""",
    """\
import torch

def train(loss, optimizer, scaler, use_amp):
    if use_amp:
        scaler.scale(loss).backward()
        finish(scaler)
    else:
        loss.backward()
        optimizer.step()
""",
    """\
import torch

def train(loss, optimizer, scaler):
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    optimizer.step()
    scaler.update()
""",
)
