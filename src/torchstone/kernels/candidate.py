"""A candidate: source that defines `ModelNew`, and the implementation that it claims to be."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from torchstone.core.options import unknown
from torchstone.kernels.problem import PARTS, read_source

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
    """The candidate in a file; a problem that stands in the same file is no part of it."""
    source = without_problem(read_source(Path(path)))
    return Candidate(source, known_implementation(implementation))


def without_problem(source: str) -> str:
    """The source without the parts of a problem, every other line at its own number."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source  # the gates say what is the matter with it
    lines = source.split("\n")
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in PARTS:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            for number in range(first - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(lines)


def known_implementation(name: str) -> Implementation:
    """The implementation of this name; a UsageError with the nearest name for another."""
    for known in IMPLEMENTATIONS:
        if name == known:
            return known
    raise unknown("kernel: --impl", name, IMPLEMENTATIONS)
