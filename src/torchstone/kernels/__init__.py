"""Compute kernels: a problem, a candidate, and a verdict that cheating does not buy.

The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchstone.kernels.candidate import Candidate
    from torchstone.kernels.gate_result import GateResult
    from torchstone.kernels.problem import Problem, load_problem, shipped_problems
    from torchstone.kernels.verdicts.verdict import Verdict
    from torchstone.kernels.verifier import verify

__all__ = [
    "Candidate",
    "GateResult",
    "Problem",
    "Verdict",
    "load_problem",
    "shipped_problems",
    "verify",
]

_HOMES = {
    "Candidate": "candidate",
    "GateResult": "gate_result",
    "Problem": "problem",
    "Verdict": "verdicts.verdict",
    "load_problem": "problem",
    "shipped_problems": "problem",
    "verify": "verifier",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'torchstone.kernels' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"torchstone.kernels.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
