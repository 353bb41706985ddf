"""More samples of outer-batch-in-inner-loop."""

GOOD = (
    """\
import torch

def fill(rows, patterns, size):
    for b_idx in range(size):
        for idx, pattern in enumerate(patterns):
            rows.append(torch.tensor(pattern[b_idx]))

def train(model, loader, epochs):
    for epoch in range(epochs):
        for step_in_epoch, batch in enumerate(loader):
            model(batch, epoch)
""",
)
