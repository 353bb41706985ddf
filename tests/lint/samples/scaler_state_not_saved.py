"""More samples of scaler-state-not-saved."""

GOOD = (
    """\
import torch

scaler = torch.amp.GradScaler("cuda")

def save(model, loss, optimizer):
    scaler.scale(loss).backward()
    state = {"optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}
    torch.save(state, "last.pt")
""",
    """\
import torch

scaler = torch.amp.GradScaler("cuda")

def save(model, loss):
    scaler.scale(loss).backward()
    torch.save(model.state_dict(), "last.pt")
""",
    """\
import torch
from torch.amp import GradScaler

def save(model, optimizer, scaler: GradScaler):
    torch.save({"optimizer": optimizer.state_dict()}, "last.pt")
""",
)
