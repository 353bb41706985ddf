"""Torchstone: the touchstone for PyTorch code.

The names below are loaded when they are first used, so that linting never loads torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchstone._version import __version__

if TYPE_CHECKING:
    from torchstone.conductor.review import review
    from torchstone.core.report import Report
    from torchstone.cost.measure import measure_cost
    from torchstone.cost.on_devices.utilization import mfu
    from torchstone.dryrun.run import dry_run
    from torchstone.lint.engine import check_paths as check
    from torchstone.tensors.analysis.analyze import analyze_tensor
    from torchstone.tensors.compare.precision import compare_precision
    from torchstone.tensors.compare.runs import compare_runs
    from torchstone.watch.decorator import watch_training
    from torchstone.watch.monitor import Watch

__all__ = [
    "Report", "Watch", "__version__", "analyze_tensor", "check", "compare_precision", "compare_runs",
    "dry_run", "measure_cost", "mfu", "review", "watch_training",
]  # fmt: skip

_HOMES = {
    "analyze_tensor": ("torchstone.tensors.analysis.analyze", "analyze_tensor"),
    "compare_precision": ("torchstone.tensors.compare.precision", "compare_precision"),
    "compare_runs": ("torchstone.tensors.compare.runs", "compare_runs"),
    "check": ("torchstone.lint.engine", "check_paths"),
    "measure_cost": ("torchstone.cost.measure", "measure_cost"),
    "mfu": ("torchstone.cost.on_devices.utilization", "mfu"),
    "dry_run": ("torchstone.dryrun.run", "dry_run"),
    "Watch": ("torchstone.watch.monitor", "Watch"),
    "watch_training": ("torchstone.watch.decorator", "watch_training"),
    "review": ("torchstone.conductor.review", "review"),
    "Report": ("torchstone.core.report", "Report"),
}


_EXTRAS = {"torch": "torch", "numpy": "watch", "transformers": "hf"}
"""Packages that a name may need, and the extra that brings them."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'torchstone' has no attribute {name!r}")
    import importlib

    home, attribute = _HOMES[name]
    try:
        module = importlib.import_module(home)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise ImportError(
            f"torchstone.{name} needs {error.name}, which is not installed: "
            f'pip install "torchstone[{extra}]"'
        ) from None
    return getattr(module, attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
