"""More samples of clipping-every-micro-step."""

GOOD = (
    """\
import torch

def train(model, loader, opt, accelerator):
    for batch in loader:
        accelerator.backward(model(batch))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
""",
)
