"""More samples of unscaled-backward."""

GOOD = (
    """\
import torch

def train(loss_g, loss_d, opt_g, opt_d, scaler):
    scaler.scale(loss_g).backward()
    scaler.step(opt_g)
    scaler.update()
    loss_d.backward()
    opt_d.step()
""",
    """\
import torch

def train(loss, optimizer, scaler):
    if scaler is None:
        loss.backward()
        optimizer.step()
    else:
        run_backward(loss, scaler)
        scaler.step(optimizer)
""",
    """\
import torch

class Trainer:
    def __init__(self, amp):
        self.scaler = torch.amp.GradScaler() if amp else None

    def step(self, loss):
        if self.scaler is not None:
            self.callback.on_backward(loss)
        else:
            loss.backward()
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
""",
    """\
import torch

def train(loss, optimizer, scaler):
    loss = scaler.scale(loss)
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
""",
)
