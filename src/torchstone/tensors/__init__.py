"""Number formats, quantisation error, and where precision was lost.

The names below are loaded when they are first used: the options of the command need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchstone.tensors.analysis.analyze import analyze_tensor
    from torchstone.tensors.analysis.result import TensorReport
    from torchstone.tensors.compare.precision import compare_precision
    from torchstone.tensors.compare.runs import compare_runs

__all__ = ["TensorReport", "analyze_tensor", "compare_precision", "compare_runs"]

_HOMES = {
    "analyze_tensor": "torchstone.tensors.analysis.analyze",
    "TensorReport": "torchstone.tensors.analysis.result",
    "compare_precision": "torchstone.tensors.compare.precision",
    "compare_runs": "torchstone.tensors.compare.runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'torchstone.tensors' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
