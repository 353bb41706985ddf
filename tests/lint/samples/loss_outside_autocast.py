"""More samples of loss-outside-autocast."""

BAD = (
    """\
import torch

criterion = torch.nn.CrossEntropyLoss()

def step(model, x, y):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        outputs = model(x)
    loss = criterion(outputs.logits, y)
    loss.backward()
""",
)

GOOD = (
    """\
import torch
import torch.nn.functional as F

def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        out = model(x)
    loss = F.mse_loss(out.float(), y)
    scaler.scale(loss).backward()
""",
    """\
import torch
import torch.nn.functional as F

def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        out = model(x)
    out = out.to(torch.float32)
    loss = F.mse_loss(out, y)
    scaler.scale(loss).backward()
""",
    """\
import torch

def step(model, x, scaler):
    with torch.autocast("cuda"):
        out = model(x)
    loss = out.loss
    scaler.scale(loss).backward()
""",
    """\
import torch
import torch.nn.functional as F

@torch.no_grad()
def evaluate(model, x, y):
    with torch.autocast("cuda"):
        out = model(x)
    return F.mse_loss(out, y)
""",
    """\
import torch
import torch.nn.functional as F

def step(model, x, y):
    with torch.autocast("cuda"):
        out = model(x)
    with torch.autocast("cuda"):
        loss = F.mse_loss(out, y)
    loss.backward()
""",
)
