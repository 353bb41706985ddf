"""More samples of bypassed-ddp-forward."""

BAD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(net, loader, optimizer):
    model = DDP(net)
    inner = model.module
    for x, y in loader:
        optimizer.zero_grad()
        loss = inner(x, y)
        loss.backward()
        optimizer.step()
""",
)

GOOD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(net, loader, optimizer, valid):
    model = DDP(net)
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
        with torch.no_grad():
            model.module(*valid)
    torch.save(model.module.state_dict(), "a.pt")
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(build())

def evaluate(model, loader):
    model.eval()
    return [model.module(x) for x in loader]
""",
)

FIXED = (
    """\
@@ -9 +9 @@
-        loss = inner(x, y)
+        loss = model(x, y)
""",
)
