"""Writers hand the numbers of a run to other tools, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchstone.watch.writers.mlflow import MLflow
    from torchstone.watch.writers.tensorboard import TensorBoard
    from torchstone.watch.writers.wandb import WandB

__all__ = ["MLflow", "TensorBoard", "WandB"]


def __getattr__(name: str) -> Any:
    """The other tool is loaded only where its writer is asked for."""
    import importlib

    if name not in __all__:
        raise AttributeError(name)
    module = importlib.import_module(f"{__name__}.{name.lower()}")
    return getattr(module, name)
