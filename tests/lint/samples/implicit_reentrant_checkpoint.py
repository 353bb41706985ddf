"""More samples of implicit-reentrant-checkpoint."""

BAD = (
    """\
import torch.utils.checkpoint as cp

def run(layers, x):
    return cp.checkpoint_sequential(layers, 4, x)
""",
)

GOOD = (
    """\
from torch.utils.checkpoint import checkpoint

def run(block, x, **options):
    return checkpoint(block, x, **options)
""",
    """\
def checkpoint(state, path):
    import torch
    torch.save(state, path)

checkpoint({}, 'model.pt')
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-    return cp.checkpoint_sequential(layers, 4, x)
+    return cp.checkpoint_sequential(layers, 4, x, use_reentrant=False)
""",
)
