"""More samples of cleared-on-every-micro-step."""

BAD = (
    """\
import torch

def train(model, loader, optimizer, scaler, accum):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda"):
            loss = model(x, y) / accum
        scaler.scale(loss).backward()
        if (i + 1) % accum == 0:
            scaler.step(optimizer)
            scaler.update()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, optimizer, accum):
    for i, (x, y) in enumerate(loader):
        if i % accum == 0:
            optimizer.zero_grad()
        loss = model(x, y) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
""",
    """\
import torch

def train(model, loader, optimizer, log_every):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        if i % log_every == 0:
            print(i)
""",
    """\
import torch

def train(g, d, loader, opt_g, opt_d, every):
    for i, x in enumerate(loader):
        opt_d.zero_grad()
        d(x).mean().backward()
        opt_d.step()
        if i % every == 0:
            opt_g.zero_grad()
            g(x).mean().backward()
            opt_g.step()
""",
)

FIXED = (
    """\
@@ -5 +4,0 @@
-        optimizer.zero_grad(set_to_none=True)
@@ -10,0 +10 @@
+            optimizer.zero_grad(set_to_none=True)
""",
)
