"""numpy in DataLoader workers: all alike before torch 1.9, seeded one by one since."""

from __future__ import annotations

import inspect

import pytest
from torch.utils.data._utils import worker

from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions

SOURCE = """\
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __getitem__(self, index):
        return np.random.randint(0, 1000, 3)

    def __len__(self):
        return 16

loader = DataLoader(Numbers(), batch_size=2, num_workers=4)
"""


@pytest.mark.parametrize(("torch", "count"), [("1.8", 1), ("1.9", 0), ("2.4", 0)])
def test_global_numpy_is_a_matter_of_the_version(torch: str, count: int) -> None:
    options = CheckOptions(
        paths=("-",), select=("TS208",), no_cache=True, stdin_name="sample.py", torch=torch
    )
    assert len(check(options, stdin=SOURCE.encode()).findings) == count


def test_workers_of_the_installed_torch_seed_numpy() -> None:
    assert "np.random.seed" in inspect.getsource(worker._worker_loop)
