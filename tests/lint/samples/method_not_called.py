"""More samples of method-not-called."""

BAD = (
    """\
import torch

def evaluate(model, x):
    model.eval
    with torch.no_grad():
        return model(x)
""",
)

GOOD = (
    """\
import torch

def evaluate(model, x):
    model.eval()
    run = model.train
    return run, x.shape
""",
    """\
import torch

def hook(module):
    module.training
    step = module.step
    return step
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-    model.eval
+    model.eval()
""",
)
