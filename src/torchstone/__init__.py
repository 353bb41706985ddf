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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'torchstone' has no attribute {name!r}")
    import importlib

    home, attribute = _HOMES[name]
    try:
        module = importlib.import_module(home)
    except (ImportError, AttributeError) as error:
        if (said := _explain(error)) is None:
            raise
        raise ImportError(f"torchstone.{name} needs {said}") from None
    return getattr(module, attribute)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext torchstone` in a notebook."""
    from torchstone.integrations.notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    from torchstone.integrations.notebook import unload

    unload(shell)


def _explain(error: ImportError | AttributeError) -> str | None:
    """What is missing when a tool cannot be loaded; None when it is not a matter of packages."""
    from torchstone.core.packages import OLDEST_TORCH, extra_for, installed_torch

    torch = installed_torch()
    if torch is not None and torch.numbers < OLDEST_TORCH:
        wanted = ".".join(map(str, OLDEST_TORCH))
        return f'torch {wanted} or newer, and this is {torch.text}: pip install "torch>={wanted}"'
    missing = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    extra = extra_for(missing, {"numpy": "watch"}.get(missing, "torch"))
    if not missing or extra is None:
        return None
    return f'{missing}, which is not installed: pip install "torchstone[{extra}]"'


def __dir__() -> list[str]:
    return sorted(__all__)
