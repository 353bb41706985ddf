"""More samples of scaler-with-bfloat16."""

GOOD = (
    """\
import torch

scaler = torch.amp.GradScaler("cuda")

def step(model, x):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(x)
    scaler.scale(loss).backward()
""",
    """\
import torch

def build(dtype):
    return torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)

def step(model, x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(x)
""",
    """\
import torch

amp_dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
scaler = torch.amp.GradScaler("cuda")

def step(model, x):
    with torch.autocast("cuda", dtype=amp_dtype):
        return scaler.scale(model(x))
""",
    """\
import torch

scaler = torch.amp.GradScaler("cuda")

def step(model, x):
    with torch.autocast("cuda"):
        return scaler.scale(model(x.to(torch.bfloat16)))
""",
)
