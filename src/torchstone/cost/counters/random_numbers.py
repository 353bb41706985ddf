"""Random numbers: one FLOP each, and nothing is read."""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, size_bytes

FAMILY = Family("random_numbers")


@FAMILY.counts(
    *(f"aten.{name}" for name in ("rand", "randn", "randint", "randperm")),
    *(f"aten.{name}_like" for name in ("rand", "randn", "randint")),
    *(
        f"aten.{name}{suffix}"
        for name in (
            "normal", "uniform", "random", "exponential", "cauchy", "log_normal", "geometric",
            "_philox_normal", "_philox_uniform",
        )
        for suffix in ("", "_")
    ),
    "aten.normal_functional",
)  # fmt: skip
def drawn(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=elements(out), read=0)


@FAMILY.counts(
    "aten.bernoulli_",
    "aten.bernoulli",
    "aten.poisson",
    "aten.binomial",
    "aten._standard_gamma",
    "aten._sample_dirichlet",
)
def drawn_from(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Each with its own parameter, which is read (unless it is one number for all)."""
    parameters = args[1:] if args and out is args[0] else args
    return Count(vector=elements(out), read=size_bytes(parameters))


@FAMILY.counts("aten.multinomial")
def sampled(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A running sum over the weights."""
    return Count(vector=args[0].numel() + elements(out))


FAMILY.example(
    lambda: torch.empty(4, 8, device="meta").normal_(),
    vector=32,
    read=0,
    written=128,
    why="32 numbers drawn",
)
FAMILY.example(
    lambda: torch.rand_like(torch.empty(4, 8, device="meta")),
    vector=32,
    read=0,
    written=128,
    why="the example tensor gives only its shape",
)
