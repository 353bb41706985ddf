"""Batches that fit the time of a run."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler
from torchstone.starting.replacements.batches import limit_batches
limit_batches(4)
data = list(range(32))
def sizes(*args, **kwargs):
    return {len(batch) for batch in DataLoader(data, *args, **kwargs)}
print(sizes(16, num_workers=2, persistent_workers=True, prefetch_factor=3, timeout=5))
print(sizes(batch_size=2), sizes(batch_sampler=BatchSampler(SequentialSampler(data), 8, False)))
print(DataLoader(data, None).batch_size)
"""


def test_no_loader_gives_more_and_none_has_workers() -> None:
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["{4}", "{2} {8}", "None"]
