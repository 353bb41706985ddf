"""More samples of float16-without-scaler."""

BAD = (
    """\
import torch

def step(model, x, y, loss_fn, optimizer):
    with torch.autocast(device_type="cuda", dtype=torch.float16):
        out = model(x)
        loss = loss_fn(out, y)
    loss.mean().backward()
    optimizer.step()
""",
    """\
import torch

def step(model, x, y, loss_fn):
    with torch.autocast("cuda"):
        out = model(x)
    loss = loss_fn(out.float(), y)
    other = loss_fn(out, y)
    other.backward()
""",
)

GOOD = (
    """\
import torch

def step(model, x, scaler):
    with torch.autocast("cuda"):
        loss = model(x)
    scaler.scale(loss).backward()
""",
    """\
import torch

def step(model, x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x)
    loss.backward()
""",
    """\
import torch

def step(model, x, accelerator):
    with torch.autocast("cuda"):
        loss = model(x)
    accelerator.backward(loss)
""",
    """\
import torch

def step(model, x, use_amp):
    with torch.autocast("cuda", enabled=use_amp):
        loss = model(x)
    loss.backward()
""",
    """\
import torch

def step(model, x, dtype):
    with torch.autocast("cuda", dtype=dtype):
        loss = model(x)
    loss.backward()
""",
    """\
import torch

scaler = torch.amp.GradScaler("cuda")

def scale_loss(loss):
    return scaler.scale(loss)

def step(model, x):
    with torch.autocast("cuda"):
        loss = scale_loss(model(x))
    loss.backward()
""",
)
