"""More samples of probabilities-as-log-probabilities."""

BAD = (
    """\
import torch.nn.functional as F
from torch import nn

kl = nn.KLDivLoss(reduction="batchmean")

def distill(student, teacher, t):
    p = F.softmax(student / t, dim=-1)
    q = F.softmax(teacher / t, dim=-1)
    return kl(p, q)
""",
    """\
import torch
from torch import nn

class Reader(nn.Module):
    def __init__(self, size, letters):
        super().__init__()
        self.add_module("head", nn.Linear(size, letters))

    def forward(self, x):
        return self.head(x), x

def loss_of(x, y, lengths, sizes):
    reader, ctc = Reader(4, 9), nn.CTCLoss()
    out, _ = reader(x)
    return ctc(out, y, lengths, sizes)
""",
    """\
import torch.nn.functional as F

def loss_of(model, x, y, smooth):
    if smooth:
        out = F.softmax(model(x), dim=1)
    else:
        out = F.log_softmax(model(x), dim=1)
    return F.nll_loss(out, y)
""",
)

GOOD = (
    """\
import torch.nn.functional as F

def distill(student, teacher, t):
    p = F.log_softmax(student / t, dim=-1)
    q = F.softmax(teacher / t, dim=-1)
    return F.kl_div(p, q, reduction="batchmean")
""",
    """\
import torch.nn.functional as F

def loss_of(model, x, y):
    return F.nll_loss(model(x).softmax(-1).log(), y)
""",
    """\
import torch.nn.functional as F

def loss_of(model, x, y):
    return F.nll_loss(F.logsigmoid(model(x)), y)
""",
)
