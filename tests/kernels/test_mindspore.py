"""A problem in mindspore is read everywhere, and judged where mindspore is installed."""

from __future__ import annotations

import importlib.util

import pytest

from torchstone.kernels import Candidate, verify
from torchstone.kernels.problem import problem_from_source

PROBLEM = """import mindspore as ms
import numpy as np


class Model(ms.nn.Cell):
    def construct(self, x):
        return ms.ops.relu(x)


def get_inputs():
    return [ms.Tensor(np.random.randn(13, 21).astype(np.float32))]


def get_init_inputs():
    return []
"""
RIGHT = """import mindspore as ms
import numpy as np


class ModelNew(ms.nn.Cell):
    def construct(self, x):
        a = x.asnumpy()
        return ms.Tensor(np.where(a < 0, np.float32(0), a))
"""
INSTALLED = importlib.util.find_spec("mindspore") is not None


def test_the_framework_is_told_by_its_imports() -> None:
    assert problem_from_source(PROBLEM, "relu").framework == "mindspore"


@pytest.mark.skipif(INSTALLED, reason="mindspore is installed")
def test_without_mindspore_it_is_a_gap() -> None:
    verdict = verify(problem_from_source(PROBLEM, "relu"), Candidate(RIGHT, "numpy"), seeds=2)
    assert not verdict.accepted
    assert not verdict.failed
    assert verdict.report().gaps[0].close == "pip install mindspore"


@pytest.mark.skipif(not INSTALLED, reason="mindspore is not installed")
def test_with_mindspore_it_is_judged() -> None:
    task = problem_from_source(PROBLEM, "relu")
    assert verify(task, Candidate(RIGHT, "numpy"), seeds=2).accepted
    wrong = RIGHT.replace("a < 0", "a < 0.01")
    assert not verify(task, Candidate(wrong, "numpy"), seeds=2).accepted
