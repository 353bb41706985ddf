"""Mistakes in the arguments of a comparison are told as such, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from torchstone import analyze_tensor, compare_precision, compare_runs
from torchstone.core.errors import TorchstoneError

X = torch.ones(2, 4)


class Fails(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dim() == 7, "seven axes"
        return x


@pytest.mark.parametrize(
    ("name", "value"),
    [("memory_limit", None), ("memory_limit", -1), ("tolerance", "x"), ("tolerance", float("nan"))],
)
def test_limits_that_are_no_number(name: str, value: Any) -> None:
    model = nn.Linear(4, 4)
    with pytest.raises(TorchstoneError, match=f"compare_runs: {name}"):
        compare_runs(model, model, X, **{name: value})


def test_a_bound_that_is_no_number() -> None:
    bound: Any = "x"
    with pytest.raises(TorchstoneError, match="compare_precision: bound"):
        compare_precision(nn.Linear(4, 4), X, low=torch.float16, bound=bound)


def test_any_error_of_the_model_is_told() -> None:
    with pytest.raises(TorchstoneError, match="seven axes"):
        compare_precision(Fails(), X, low=torch.float16)
    with pytest.raises(TorchstoneError, match="seven axes"):
        compare_runs(Fails(), Fails(), X)


def test_lazy_layers_are_refused() -> None:
    with pytest.raises(TorchstoneError, match="lazy"):
        compare_precision(nn.LazyLinear(3), X, low=torch.float16)
    with pytest.raises(TorchstoneError, match="lazy"):
        compare_runs(nn.LazyLinear(3), nn.LazyLinear(3), X)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(4, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        torch.ones([1] * 70),
        nn.UninitializedParameter(),
    ],
)
def test_tensors_that_cannot_be_read(tensor: torch.Tensor) -> None:
    with pytest.raises(TorchstoneError):
        analyze_tensor(tensor)


def test_one_name_will_do_for_a_list() -> None:
    tensor = torch.linspace(-1, 1, 64).reshape(8, 8)
    alone = analyze_tensor(tensor, formats="bf16", granularities="row")
    assert [item.format for item in alone.formats] == ["bf16"]
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    found = compare_precision(model, X, low=torch.float16, layers="1")
    assert {item.place.module for item in found.operators} == {"1"}


@pytest.mark.parametrize("value", [5, [5], b"bf16"])
def test_lists_that_hold_no_names(value: Any) -> None:
    with pytest.raises(TorchstoneError, match=r"formats: got .* expected a list of names"):
        analyze_tensor(X, formats=value)
    with pytest.raises(TorchstoneError, match=r"granularities: got .* expected a list of names"):
        analyze_tensor(X, granularities=value)
    with pytest.raises(TorchstoneError, match=r"layers: got .* expected a list of names"):
        compare_precision(nn.Linear(4, 4), X, low=torch.float16, layers=value)


@pytest.mark.parametrize("value", [5, "x", nn.Linear(1, 1)])
def test_a_scaler_that_is_none(value: Any) -> None:
    with pytest.raises(TorchstoneError, match=r"scaler: got .* expected a GradScaler"):
        compare_precision(nn.Linear(4, 4), X, low=torch.float16, scaler=value)


@pytest.mark.parametrize("value", ["x", -1, 1.5, None])
def test_a_seed_that_is_no_number(value: Any) -> None:
    model = nn.Linear(4, 4)
    with pytest.raises(TorchstoneError, match="compare_precision: seed"):
        compare_precision(model, X, low=torch.float16, seed=value)
    with pytest.raises(TorchstoneError, match="compare_runs: seed"):
        compare_runs(model, model, X, seed=value)
