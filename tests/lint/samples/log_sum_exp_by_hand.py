"""More samples of log-sum-exp-by-hand."""

BAD = (
    """\
import torch

y = torch.exp(x + b).sum(-1).log()
""",
    """\
import torch

y = torch.log(x.exp().sum())
""",
)

GOOD = (
    """\
import torch

y = torch.logsumexp(x, dim=1)
""",
    """\
import torch

y = torch.log(torch.sum(torch.exp(x), 1) + 2.5)
""",
    """\
import torch

y = torch.log(torch.exp(x - m).sum(1)) + m
""",
    """\
import torch

y = torch.sum(torch.log(torch.exp(x)), 1)
""",
    """\
import torch

def lse(x, top):
    stable = x - top
    return top + stable.exp().sum(1).log()
""",
)

FIXED = (
    """\
@@ -3 +3 @@
-y = torch.exp(x + b).sum(-1).log()
+y = torch.logsumexp(x + b, -1)
""",
    "",
)
