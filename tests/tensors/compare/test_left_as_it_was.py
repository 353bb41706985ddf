"""Models that write to themselves or to their inputs come out of a comparison as they went in."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from torchstone import compare_precision, compare_runs
from torchstone.core.errors import TorchstoneError


class ReplacesBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("average", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        self.average = 0.9 * self.average + 0.1 * y.detach().mean(0)
        return y - self.average


class AddsLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        self.extra = nn.Linear(8, 8, dtype=x.dtype)
        return self.linear(x)


class ShrinksWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            self.linear.weight.mul_(0.5)
        return self.linear(x)


class ShrinksThroughData(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        self.linear.weight.data.mul_(0.5)
        self.linear.bias.data[2:4].zero_()
        return self.linear(x)


class RenormsEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 8, max_norm=0.5)

    def forward(self, x: torch.Tensor) -> Any:
        return x + self.table(torch.arange(4))


class ChangesEverything(nn.Module):
    """All that a forward can do to its module besides computing."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.frozen = nn.Parameter(torch.ones(8), requires_grad=False)
        self.loose = torch.zeros(8)
        self.history: list[float] = []
        self.fails = fails
        self.steps = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.steps += 1
        self.history.append(random.random() + np.random.rand() + float(torch.rand(())))
        self.loose += 1
        self.eval()
        self.frozen.requires_grad_(True)
        self.linear.register_forward_hook(lambda *_: None)
        self.linear.weight.register_hook(lambda gradient: gradient)
        with torch.no_grad():
            self.linear.weight.add_(1)
        if self.fails and self.steps:
            raise ValueError("the forward fails")
        return self.linear(x) * self.frozen.to(x.dtype)


class ScalesInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x.mul_(2))


def with_batch_norm() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))


def with_spectral_norm() -> nn.Module:
    layer: nn.Module = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))
    return layer


def in_half(model: nn.Module, x: torch.Tensor) -> None:
    compare_precision(model, x, low=torch.float16)


def in_single(model: nn.Module, x: torch.Tensor) -> None:
    compare_precision(model, x, low=torch.float32)


def under_autocast(model: nn.Module, x: torch.Tensor) -> None:
    compare_precision(model, x, low=torch.float16, autocast=True)


def with_itself(model: nn.Module, x: torch.Tensor) -> None:
    compare_runs(model, model, x)


ALL = (in_half, in_single, under_autocast, with_itself)


@pytest.mark.parametrize(
    ("make", "compare"),
    [(m, c) for m in (ReplacesBuffer, AddsLayer, with_batch_norm, with_spectral_norm) for c in ALL]
    + [(m, c) for m in (ShrinksWeight, ShrinksThroughData, RenormsEmbedding) for c in ALL],
)
def test_the_model_is_left_as_it_was(
    make: Callable[[], nn.Module], compare: Callable[[nn.Module, torch.Tensor], None]
) -> None:
    torch.manual_seed(0)
    model = make()
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    values = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    compare(model, torch.randn(4, 8))
    after = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    assert {name: id(item) for name, item in after.items()} == {
        name: id(item) for name, item in tensors.items()
    }
    for name, value in values.items():
        assert after[name].dtype == value.dtype, name
        assert torch.equal(after[name], value), name


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("compare", ALL)
def test_flags_hooks_gradients_and_generators_are_left_as_they_were(
    compare: Callable[[nn.Module, torch.Tensor], None], fails: bool
) -> None:
    torch.manual_seed(0)
    model = ChangesEverything(fails)
    model.linear.weight.grad = gradient = torch.ones(8, 8)
    weight = model.linear.weight.detach().clone()
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
    with contextlib.ExitStack() as stack:
        if fails:
            stack.enter_context(pytest.raises(TorchstoneError, match="the forward fails"))
        compare(model, torch.ones(4, 8))
    assert torch.equal(model.linear.weight, weight)
    assert model.linear.weight.grad is gradient
    assert torch.equal(gradient, torch.ones(8, 8))
    assert model.training
    assert model.linear.training
    assert not model.frozen.requires_grad
    assert not model.linear._forward_hooks
    assert not model.linear.weight._backward_hooks
    assert (model.steps, model.history, float(model.loose.sum())) == (0, [], 0.0)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert np.random.get_state()[1].tolist() == states[2]  # type: ignore[index]


def test_statistics_of_a_model_in_the_low_type_are_left_as_they_were() -> None:
    torch.manual_seed(0)
    model = with_batch_norm().half()
    before = {name: item.clone() for name, item in model.named_buffers()}
    compare_precision(model, torch.randn(4, 8).half(), low=torch.float16)
    assert all(torch.equal(item, before[name]) for name, item in model.named_buffers())


@pytest.mark.parametrize("compare", ALL)
def test_the_batch_is_left_as_it_was(compare: Callable[[nn.Module, torch.Tensor], None]) -> None:
    torch.manual_seed(0)
    batch = torch.randn(4, 8)
    before = batch.clone()
    compare(ScalesInput(), batch)
    assert torch.equal(batch, before)


def test_both_runs_get_the_same_inputs() -> None:
    torch.manual_seed(0)
    model = ScalesInput()
    assert compare_runs(model, model, torch.randn(4, 8)).first_divergence is None


def test_a_scripted_model_runs() -> None:
    model = torch.jit.script(nn.Sequential(nn.Linear(8, 4), nn.ReLU()))
    assert compare_precision(model, torch.ones(2, 8), low=torch.float16).output_error < 0.01
