"""A candidate: source that defines `ModelNew`, and the implementation that it claims to be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from torchstone.core.options import unknown
from torchstone.kernels.problem import read_source

Implementation = Literal["triton", "numba", "c", "torch", "numpy", "swft"]
IMPLEMENTATIONS: tuple[Implementation, ...] = get_args(Implementation)
WITH_KERNELS = frozenset({"triton", "numba", "c", "swft"})
"""Implementations that have kernels of their own, which must do the work."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The source of a `ModelNew` and what it is written in."""

    source: str
    implementation: Implementation


def load_candidate(path: str | Path, implementation: str) -> Candidate:
    """The candidate in a file."""
    return Candidate(read_source(Path(path)), known_implementation(implementation))


def known_implementation(name: str) -> Implementation:
    """The implementation of this name; a UsageError with the nearest name for another."""
    for known in IMPLEMENTATIONS:
        if name == known:
            return known
    raise unknown("kernel: --impl", name, IMPLEMENTATIONS)
