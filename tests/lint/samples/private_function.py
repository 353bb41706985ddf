"""More samples of private-function."""

BAD = (
    """\
import torch

class Warmup(torch.optim.lr_scheduler._LRScheduler):
    pass
""",
    """\
import torch

@torch._dynamo.disable
def slow(x):
    return x
""",
)

GOOD = (
    """\
import torch

def pair(x):
    return torch.nn.modules.utils._pair(x)
""",
    """\
import torch

def collate(items):
    try:
        return torch.utils.data._utils.collate.default_collate(items)
    except AttributeError:
        return torch.utils.data.default_collate(items)
""",
)

FIXED = (
    """\
@@ -3 +3 @@
-class Warmup(torch.optim.lr_scheduler._LRScheduler):
+class Warmup(torch.optim.lr_scheduler.LRScheduler):
""",
    """\
@@ -3 +3 @@
-@torch._dynamo.disable
+@torch.compiler.disable
""",
)
