"""More samples of empty-cache-in-step-loop."""

BAD = (
    """\
import gc
import torch

def train(model, loader, opt):
    for x in loader:
        gc.collect()
        loss = model(x.cuda()).mean()
        loss.backward()
        opt.step()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, opt):
    for epoch in range(10):
        for x in loader:
            loss = model(x.cuda()).mean()
            loss.backward()
            opt.step()
        torch.cuda.empty_cache()
""",
    """\
import torch

def train(model, loader, opt):
    for x in loader:
        try:
            loss = model(x.cuda()).mean()
            loss.backward()
            opt.step()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
""",
    """\
import gc
import torch

def train(model, loader, opt):
    for step, x in enumerate(loader):
        loss = model(x.cuda()).mean()
        loss.backward()
        opt.step()
        if step % 1000 == 0:
            gc.collect()
""",
)

FIXED = (
    """\
@@ -6 +5,0 @@
-        gc.collect()
""",
)
