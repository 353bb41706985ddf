"""More samples of log-of-one-plus."""

BAD = (
    """\
import torch

y = torch.log(x * 2 + 1.0)
""",
    """\
import torch

y = (1 + x).log()
""",
    """\
import torch

y = torch.log(1 + torch.exp(x))
""",
)

GOOD = (
    """\
import torch

y = torch.log(2 + x)
""",
    """\
import torch

y = torch.log(x + 1e-8)
""",
    """\
import math
import torch

y = math.log(1 + n)
""",
    """\
import torch

y = torch.log(1 - x)
""",
)

FIXED = (
    """\
@@ -3 +3 @@
-y = torch.log(x * 2 + 1.0)
+y = torch.log1p(x * 2)
""",
    """\
@@ -3 +3 @@
-y = (1 + x).log()
+y = torch.log1p(x)
""",
    "",
)
