"""`Trainer(callbacks=[WatchCallback()])`: a watch inside a Lightning Trainer."""

from __future__ import annotations

from typing import Any

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.watch.monitor import Watch

try:
    from lightning.pytorch import Callback  # type: ignore[import-not-found]
except ImportError:
    try:
        from pytorch_lightning import Callback
    except ImportError:
        raise UsageError(
            "torchstone.watch.callbacks.lightning",
            "no Lightning",
            Text("lightning or pytorch-lightning 2", "lightning 或 pytorch-lightning 2"),
            "pip install pytorch-lightning",
        ) from None


class WatchCallback(Callback):  # type: ignore[misc]
    """Watches every batch of a Lightning fit."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.watch: Watch | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.watch = Watch(pl_module, list(trainer.optimizers), **self.options)
        self.watch.prepare(None, (), {})
        self.watch.begin()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int  # noqa: ARG002
    ) -> None:  # fmt: skip
        if self.watch is not None:
            self.watch.step(outputs, batch)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        if self.watch is not None:
            self.watch.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        self.on_train_end(trainer, pl_module)
