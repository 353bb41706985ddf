"""More samples of gradients-cleared-before-step."""

BAD = (
    """\
import torch

def train(model, loader, opt):
    for x, y in loader:
        opt.zero_grad()
        loss = model(x, y)
        loss.backward()
        opt.zero_grad()
        opt.step()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        model(x, y).backward()
        optimizer.step()
        optimizer.zero_grad()
""",
    """\
import torch

def train(g, d, loader, og, od):
    for x in loader:
        d(g(x).detach()).backward()
        og.zero_grad()
        od.step()
        d(g(x)).backward()
        og.step()
""",
    """\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        probe = model(x, y)
        probe.backward()
        record(model)
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
""",
)

FIXED = (
    """\
@@ -8 +7,0 @@
-        opt.zero_grad()
""",
)
