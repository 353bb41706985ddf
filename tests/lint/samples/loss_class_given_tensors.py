"""More samples of loss-class-given-tensors."""

GOOD = (
    """\
import torch.nn as nn

def loss_of(model, x, y, weights):
    return nn.CrossEntropyLoss(weights)(model(x), y)
""",
    """\
import torch.nn as nn
import torch.nn.functional as F

criterion = nn.CrossEntropyLoss(None, None, ignore_index=0)

def loss_of(model, x, y):
    return F.cross_entropy(model(x), y) + nn.MSELoss()(x, y)
""",
)
