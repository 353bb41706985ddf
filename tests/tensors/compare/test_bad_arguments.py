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
