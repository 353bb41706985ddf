"""More samples of deprecated-cuda-amp."""

BAD = (
    """\
import torch
from torch.cuda.amp import GradScaler, autocast

scaler = GradScaler(init_scale=1024.0)

def step(model, x):
    with autocast():
        return scaler.scale(model(x))
""",
    """\
import torch

class Double(torch.autograd.Function):
    @staticmethod
    @torch.cuda.amp.custom_fwd
    def forward(ctx, x):
        return 2 * x
""",
    """\
import torch

scaler = torch.cpu.amp.GradScaler()
""",
)

GOOD = (
    """\
import torch

def step(model, x):
    with torch.amp.autocast("cuda"):
        return model(x)
""",
    """\
import torch
from torch.amp import GradScaler, autocast

scaler = GradScaler("cuda")
""",
    """\
try:
    from torch.amp import autocast
except ImportError:
    from torch.cuda.amp import autocast
""",
    """\
import torch
from apex import amp

model, optimizer = amp.initialize(model, optimizer)
""",
)

FIXED = (
    """\
@@ -2 +2 @@
-from torch.cuda.amp import GradScaler, autocast
+from torch.amp import GradScaler, autocast
@@ -4 +4 @@
-scaler = GradScaler(init_scale=1024.0)
+scaler = GradScaler("cuda", init_scale=1024.0)
@@ -7 +7 @@
-    with autocast():
+    with autocast("cuda"):
""",
    """\
@@ -5 +5 @@
-    @torch.cuda.amp.custom_fwd
+    @torch.amp.custom_fwd(device_type="cuda")
""",
    """\
@@ -3 +3 @@
-scaler = torch.cpu.amp.GradScaler()
+scaler = torch.amp.GradScaler("cpu")
""",
)
