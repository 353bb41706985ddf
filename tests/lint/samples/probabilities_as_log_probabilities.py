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
