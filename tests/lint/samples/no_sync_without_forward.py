"""More samples of no-sync-without-forward."""

BAD = (
    """\
from contextlib import nullcontext
import torch

def step(model, batches, optimizer):
    for i, (x, y) in enumerate(batches):
        loss = model(x, y)
        with model.no_sync() if i + 1 < len(batches) else nullcontext():
            loss.backward()
""",
    """\
from contextlib import nullcontext
import torch

def step(model, batches, optimizer):
    for i, (x, y) in enumerate(batches):
        loss = model(x, y)
        quiet = nullcontext() if i + 1 == len(batches) else model.no_sync()
        with quiet:
            loss.backward()
""",
)

GOOD = (
    """\
import torch

def step(model, batches, optimizer):
    for x, y in batches[:-1]:
        with model.no_sync():
            loss = model(x, y)
            loss.backward()
""",
    """\
import torch

def step(accelerator, model, batches):
    for x, y in batches[:-1]:
        with accelerator.no_sync(model):
            compute(model, x, y).backward()
""",
    """\
from contextlib import nullcontext
import torch

def step(model, batches, optimizer):
    for i, (x, y) in enumerate(batches):
        with nullcontext() if i + 1 == len(batches) else model.no_sync():
            loss = model(x, y)
            loss.backward()
""",
)
