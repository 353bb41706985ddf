"""More samples of clipping-out-of-order."""

BAD = (
    """\
from torch.nn.utils import clip_grad_value_

def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x, y)
        optimizer.zero_grad()
        clip_grad_value_(model.parameters(), 0.5)
        loss.backward()
        optimizer.step()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
""",
    """\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        model(x, y).backward()
        optimizer.step()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
        optimizer.zero_grad()
""",
    """\
import torch

def train(g, d, og, od, loader):
    for x in loader:
        g(x).backward()
        og.step()
        d(x).backward()
        torch.nn.utils.clip_grad_norm_(d.parameters(), 1.0)
        od.step()
""",
    """\
import torch

def train(g, d, og, od, loader):
    for x in loader:
        g(x).backward()
        torch.nn.utils.clip_grad_norm_(g.parameters(), 1.0)
        torch.nn.utils.clip_grad_norm_(d.parameters(), 1.0)
        og.step()
        od.step()
""",
)

FIXED = (
    """\
@@ -6,0 +7 @@
+        loss.backward()
@@ -8 +8,0 @@
-        loss.backward()
""",
)
