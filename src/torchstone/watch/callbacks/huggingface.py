"""`Trainer(callbacks=[WatchCallback()])`: a watch inside the Trainer of transformers."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from torchstone.watch.listen.discover import loss_in
from torchstone.watch.monitor import Watch


class WatchCallback(TrainerCallback):
    """Watches every optimizer step of a Trainer; the loss is taken from the model's output."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.watch: Watch | None = None
        self._loss: Any = None
        self._undo: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        model, optimizer = kwargs.get("model"), kwargs.get("optimizer")
        self.watch = Watch(model, scheduler=kwargs.get("lr_scheduler"), **self.options)
        if model is not None:
            self._undo = model.register_forward_hook(self._keep_loss)
        self.watch.prepare(None, (optimizer,), {})
        self.watch.begin()

    def _keep_loss(self, model: Any, args: Any, output: Any) -> None:  # noqa: ARG002
        if model.training:
            self._loss = loss_in(output)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        if self.watch is not None:
            self.watch.step(self._loss)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        if self._undo is not None:
            self._undo.remove()
        if self.watch is not None:
            self.watch.close()
