"""More samples of blocking-transfer."""

BAD = (
    """\
import torch
from torch.utils.data import DataLoader

def train(dataset, model):
    loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=True)
    for i, batch in enumerate(loader):
        model(batch['image'].cuda())
""",
)

GOOD = (
    """\
import torch
from torch.utils.data import DataLoader

def train(dataset, model, device):
    loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=False)
    for x in loader:
        model(x.to(device))
""",
    """\
import torch
from torch.utils.data import DataLoader

def train(dataset, model, device):
    loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=True)
    for x in loader:
        y = model(x.to(device, non_blocking=True))
        print(y.to('cpu'), x.float().to(device))
""",
)

FIXED = (
    """\
@@ -7 +7 @@
-        model(batch['image'].cuda())
+        model(batch['image'].cuda(non_blocking=True))
""",
)
