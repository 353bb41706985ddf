"""More samples of half-accumulator."""

BAD = (
    """\
import torch

def average(batches):
    total = 0.0
    for batch in batches:
        total = total + batch.bfloat16().mean()
    return total / len(batches)
""",
)

GOOD = (
    """\
import torch

def average(batches):
    total = torch.zeros(())
    for batch in batches:
        total += batch.half().mean()
    return total / len(batches)
""",
    """\
import torch

def average(batches):
    total = 0.0
    for batch in batches:
        total += batch.half().mean().item()
    return total / len(batches)
""",
    """\
import torch

def shift(x, offsets):
    x = x.half()
    x += offsets
    return x
""",
    """\
import torch

def average(batches, dtype):
    total = torch.zeros((), dtype=dtype)
    for batch in batches:
        total += batch.mean()
    return total
""",
    """\
import torch

def layers(x, blocks):
    x = x.bfloat16()
    for block in blocks:
        x = x + block(x)
    return x
""",
)
