"""More samples of sigmoid-before-bce-with-logits."""

BAD = (
    """\
import torch.nn.functional as F

def loss_of(model, x, y):
    return F.binary_cross_entropy_with_logits(model(x).sigmoid(), y)
""",
)

GOOD = (
    """\
import torch
from torch import nn

criterion = nn.BCELoss()

def loss_of(model, x, y):
    return criterion(torch.sigmoid(model(x)), y)
""",
    """\
import torch
import torch.nn.functional as F

def loss_of(model, x, y):
    logits = model(x)
    loss = F.binary_cross_entropy_with_logits(logits, y)
    return loss, torch.sigmoid(logits) > 0.5
""",
    """\
import torch.nn.functional as F

def focal(logits, y):
    p = logits.sigmoid()
    ce = F.binary_cross_entropy_with_logits(logits, y, reduction="none")
    return (ce * (1 - p) ** 2).mean()
""",
)
