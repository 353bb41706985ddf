"""More samples of exp-minus-one."""

BAD = (
    """\
import torch

y = (torch.exp(a + b) - 1.0) * c
""",
    """\
import torch

y = x.exp() - 1
""",
)

GOOD = (
    """\
import torch

y = torch.exp(x) - 2
""",
    """\
import torch

y = torch.exp(x - 1)
""",
    """\
import math
import torch

y = math.exp(r) - 1
""",
    """\
import torch

kl = -0.5 * (1 + v - m.pow(2) - v.exp())
""",
)

FIXED = (
    """\
@@ -3 +3 @@
-y = (torch.exp(a + b) - 1.0) * c
+y = (torch.expm1(a + b)) * c
""",
    """\
@@ -3 +3 @@
-y = x.exp() - 1
+y = torch.expm1(x)
""",
)
