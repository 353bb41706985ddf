"""More samples of step-when-no-multiple."""

BAD = (
    """\
import torch

def train(model, loader, opt, every):
    for i, x in enumerate(loader):
        model(x).backward()
        if (i + 1) % every:
            opt.step()
            opt.zero_grad()
""",
    """\
import torch

def train(model, loader, opt, grad_accum):
    for i, x in enumerate(loader):
        model(x).backward()
        if i % grad_accum != 0:
            opt.step()
            opt.zero_grad()
""",
)

GOOD = (
    """\
import torch

def train(d, g, loader, opt_d, opt_g, n_critic):
    for i, x in enumerate(loader):
        opt_d.zero_grad()
        d(x).mean().backward()
        opt_d.step()
        if i % n_critic:
            continue
        opt_g.zero_grad()
        g(x).mean().backward()
        opt_g.step()
""",
    """\
import torch

def train(d, g, loader, opt_d, opt_g, n_critic):
    for i, x in enumerate(loader):
        if i % n_critic != 0:
            d(x).mean().backward()
            opt_d.step()
            opt_d.zero_grad()
        else:
            g(x).mean().backward()
            opt_g.step()
            opt_g.zero_grad()
""",
)

FIXED = (
    """\
@@ -6 +6 @@
-        if (i + 1) % every:
+        if (i + 1) % every == 0:
""",
    "",
)
