"""More samples of clip-before-unscale."""

BAD = (
    """\
import torch
from torch.nn.utils import clip_grad_value_

class Trainer:
    def step(self, batch):
        loss = self.loss(batch)
        self.scaler.scale(loss).backward()
        if self.clip:
            clip_grad_value_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, optimizer, scaler):
    for x, y in loader:
        scaler.scale(model(x, y)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
""",
    """\
import torch

def train(model, loss, optimizer, scaler, use_amp):
    if use_amp:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
""",
    """\
import torch

def train(model, loss, optimizer, scaler, use_amp):
    if use_amp:
        scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if use_amp:
        scaler.step(optimizer)
        scaler.update()
    else:
        optimizer.step()
""",
    """\
import torch

def train(generator, critic, loss_g, loss_c, opt_g, opt_c, scaler):
    scaler.scale(loss_g).backward()
    scaler.step(opt_g)
    scaler.update()
    loss_c.backward()
    torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
    opt_c.step()
""",
    """\
import torch

def train(model, loss, optimizer):
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
""",
)

FIXED = (
    """\
@@ -8,0 +9 @@
+            self.scaler.unscale_(self.optimizer)
""",
)
