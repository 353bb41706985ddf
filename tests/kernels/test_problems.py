"""Every shipped problem runs, is the same under a seed, uses all of its inputs and is not weak."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from torchstone.kernels import problems

NAMES = [item.name for item in pkgutil.iter_modules(problems.__path__)]
FAMILIES = {
    "elementwise": "relu gelu swiglu exp_add",
    "reduction": "row_sum column_max argmax logsumexp variance",
    "softmax": "softmax causal_softmax",
    "norm": "layer_norm rms_norm group_norm batch_norm_inference",
    "matmul": "matmul batched_matmul matmul_transposed linear_gelu matmul_int8",
    "attention": "attention causal_attention grouped_query_attention",
    "convolution": "conv1d conv2d depthwise_conv2d",
    "scan": "cumulative_sum linear_recurrence",
    "scatter": "index_add embedding_bag",
    "mixture of experts": "moe_gating moe_dispatch",
    "latent attention": "mla_projection mla_absorbed",
}


def module(name: str) -> ModuleType:
    return importlib.import_module(f"torchstone.kernels.problems.{name}")


def seed(value: int) -> None:
    torch.manual_seed(value)
    np.random.seed(value)


def made(name: str, value: int) -> tuple[Callable[..., Any], list[Any]]:
    problem = module(name)
    seed(value)
    inputs = problem.get_inputs()
    seed(value + 1)
    return problem.Model(*problem.get_init_inputs()), inputs


def arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    parts = result if isinstance(result, tuple) else (result,)
    return [part.detach().numpy() if isinstance(part, torch.Tensor) else part for part in parts]


def copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value.copy()


def disturbed(value: Any) -> Any:
    """The same kind of thing with other content: indices stay indices."""
    other = copied(value)
    if other.dtype in (torch.int64, np.int64):
        flat = other.reshape(-1)
        largest = int(flat.max())
        return ((largest - flat).reshape(other.shape)).contiguous()
    if other.dtype in (torch.int8, np.int8):
        return -1 - other
    return 0.25 - other * 0.5


def test_all_families_are_there() -> None:
    listed = " ".join(FAMILIES.values()).split()
    assert sorted(listed) == sorted(NAMES)
    assert len(NAMES) >= 30
    assert sum("import torch" not in source(name) for name in NAMES) >= 4


def source(name: str) -> str:
    file = module(name).__file__
    assert file is not None
    with open(file, encoding="utf-8") as opened:
        return opened.read()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_same_under_a_seed(name: str) -> None:
    results = []
    for value in (3, 3, 4):
        model, inputs = made(name, value)
        before = [copied(item) for item in inputs]
        results.append(arrays(model(*inputs)))
        for old, new in zip(before, inputs, strict=True):
            assert np.array_equal(np.asarray(old), np.asarray(new)), "inputs are not to be changed"
    first, again, other = results
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert all(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert [a.shape for a in first] == [a.shape for a in other]


@pytest.mark.parametrize("name", NAMES)
def test_every_input_matters(name: str) -> None:
    model, inputs = made(name, 5)
    plain = arrays(model(*inputs))
    for place in range(len(inputs)):
        changed = [copied(item) for item in inputs]
        changed[place] = disturbed(changed[place])
        after = arrays(model(*changed))
        share = max(np.mean(a != b) for a, b in zip(plain, after, strict=True))
        assert share > 0.4, f"input {place}"


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_neither_constant_nor_an_input_nor_tiny(name: str) -> None:
    model, inputs = made(name, 6)
    for result in arrays(model(*inputs)):
        assert result.size >= 18
        wide = result.astype(np.float64)
        assert np.isfinite(wide).all()
        assert wide.std() > 0.05 * np.abs(wide).mean() > 1e-4
        for item in inputs:
            given = np.asarray(item)
            assert given.shape != result.shape or np.mean(given == result) < 0.9


@pytest.mark.parametrize("name", NAMES)
def test_inputs_have_both_signs(name: str) -> None:
    _, inputs = made(name, 7)
    signed = [np.asarray(item) for item in inputs if np.asarray(item).dtype != np.int64]
    assert any((item < 0).any() and (item > 0).any() for item in signed)
