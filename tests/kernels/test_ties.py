"""Which of equal elements is right is known where the framework says so, and open elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchstone.kernels.harness.reference.running import Reference
from torchstone.kernels.harness.reference.ties import ties_are_fixed

PROBLEM = """import numpy as np
import torch


class Model:
    def __call__(self, x):
        return {body}


def get_inputs():
    return [None]


def get_init_inputs():
    return []
"""
TORCH = {
    "x.argmax(dim=1)": True,
    "x.T.contiguous().argmin(dim=0)": True,
    "x.double().max(dim=1).indices": True,
    "torch.min(x, 1)": True,
    "x.sort(dim=1, stable=True).indices": True,
    "torch.argsort(x, dim=1, stable=True)": True,
    "x.sort(dim=1).indices": False,
    "x.argsort(dim=1)": False,
    "x.topk(2, dim=1).indices": False,
    "(x.argmax(dim=1), x.topk(2, dim=1).indices)": False,
    "x.median(dim=1).indices": False,
    "x.softmax(dim=1).argmax(dim=1)": False,  # rounding makes ties of its own
    "x.sum(dim=1)": False,
}
NUMPY = {
    "x.argmax(axis=1)": True,
    "np.argmin(x, axis=1)": True,
    "np.argsort(x, axis=1, kind='stable')": True,
    "np.argsort(x, axis=1)": False,
    "np.argpartition(x, 2, axis=1)": False,
    "np.exp(x).argmax(axis=1)": False,
    "x.sum(axis=1)": False,
}


@pytest.mark.parametrize(("body", "fixed"), TORCH.items(), ids=TORCH)
def test_torch(body: str, fixed: bool) -> None:
    reference = Reference.load(PROBLEM.format(body=body), "torch")
    assert ties_are_fixed(reference, [torch.randn(5, 9)]) is fixed


@pytest.mark.parametrize(("body", "fixed"), NUMPY.items(), ids=NUMPY)
def test_numpy(body: str, fixed: bool) -> None:
    reference = Reference.load(PROBLEM.format(body=body), "numpy")
    given = np.random.default_rng(0).standard_normal((5, 9))
    assert ties_are_fixed(reference, [given]) is fixed
    assert type(given) is np.ndarray
