"""Monitoring of training runs: learns the normal range of each signal, and reports departures.

The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchstone.watch.alerts import Alert, TrainingAlertError
    from torchstone.watch.decorator import watch_training
    from torchstone.watch.definitions import (
        AdaptiveThreshold,
        detect_distortion,
        detect_drift,
        detect_overflow,
        detect_underflow,
    )
    from torchstone.watch.monitor import Watch

__all__ = [
    "AdaptiveThreshold",
    "Alert",
    "TrainingAlertError",
    "Watch",
    "detect_distortion",
    "detect_drift",
    "detect_overflow",
    "detect_underflow",
    "watch_training",
]

_HOMES = {
    "Alert": "alerts",
    "TrainingAlertError": "alerts",
    "Watch": "monitor",
    "watch_training": "decorator",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'torchstone.watch' has no attribute {name!r}")
    import importlib

    home = importlib.import_module(f"torchstone.watch.{_HOMES.get(name, 'definitions')}")
    return getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
