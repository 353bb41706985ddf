"""More samples of private-function-import."""

BAD = (
    """\
from torch.optim.lr_scheduler import _LRScheduler

class Warmup(_LRScheduler):
    pass
""",
)

GOOD = (
    """\
from torch.optim.lr_scheduler import LRScheduler

class Warmup(LRScheduler):
    pass
""",
    """\
try:
    from torch.optim.lr_scheduler import LRScheduler
except ImportError:
    from torch.optim.lr_scheduler import _LRScheduler as LRScheduler
""",
    """\
from torch.nn.modules.utils import _pair
""",
)

FIXED = (
    """\
@@ -1 +1 @@
-from torch.optim.lr_scheduler import _LRScheduler
+from torch.optim.lr_scheduler import LRScheduler
@@ -3 +3 @@
-class Warmup(_LRScheduler):
+class Warmup(LRScheduler):
""",
)
