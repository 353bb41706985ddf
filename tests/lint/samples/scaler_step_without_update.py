"""More samples of scaler-step-without-update."""

BAD = (
    """\
import torch

class Trainer:
    def step(self, batch):
        self.scaler.scale(self.loss(batch)).backward()
        self.scaler.step(self.optimizer)
""",
)

GOOD = (
    """\
import torch

scaler = torch.amp.GradScaler("cuda")

def train(model, loader, optimizer):
    for x, y in loader:
        scaler.scale(model(x, y)).backward()
        scaler.step(optimizer)
        scaler.update()
""",
    """\
import torch

class Trainer:
    def step(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.after_step()

    def after_step(self):
        self.scaler.update()
""",
    """\
import torch

def apply(scaler, optimizer):
    scaler.step(optimizer)
""",
    """\
import torch
from sklearn.preprocessing import StandardScaler

scaler = StandardScaler()
scheduler.step(optimizer)
""",
)

FIXED = (
    """\
@@ -6,0 +7 @@
+        self.scaler.update()
""",
)
