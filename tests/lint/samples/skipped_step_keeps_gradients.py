"""More samples of skipped-step-keeps-gradients."""

BAD = (
    """\
import torch

def train(model, loader, opt, scaler):
    for x in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isnan(norm):
            continue
        scaler.step(opt)
        scaler.update()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, opt):
    for x in loader:
        opt.zero_grad()
        loss = model(x)
        loss.backward()
        if not torch.isfinite(loss):
            continue
        opt.step()
""",
    """\
import torch

def train(model, loader, opt):
    for x in loader:
        loss = model(x)
        if not torch.isfinite(loss):
            continue
        loss.backward()
        opt.step()
        opt.zero_grad()
""",
)

FIXED = (
    """\
@@ -11,0 +12 @@
+            scaler.update()
""",
)
