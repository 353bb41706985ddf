"""More samples of legacy-loss-reduction."""

BAD = (
    """\
import torch.nn.functional as F

loss = F.l1_loss(x, y, size_average=False, reduce=False)
""",
    """\
import torch.nn.functional as F

loss = F.cross_entropy(x, y, reduce=flag)
""",
)

GOOD = (
    """\
import torch
from losses import MSELoss

criterion = MSELoss(size_average=False)
""",
    """\
import torch.nn.functional as F

loss = F.l1_loss(x, y)
""",
)

FIXED = (
    """\
@@ -3 +3 @@
-loss = F.l1_loss(x, y, size_average=False, reduce=False)
+loss = F.l1_loss(x, y, reduction='none')
""",
    "",
)
