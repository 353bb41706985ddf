"""`with watch_accelerate(accelerator, model, optimizer) as w:`: a watch in an Accelerate loop."""

from __future__ import annotations

from typing import Any

from torchstone.watch.monitor import Watch


def watch_accelerate(accelerator: Any, model: Any, optimizer: Any, **options: Any) -> Watch:
    """A watch of what `accelerator.prepare` returned; call `w.step(loss)` once in every turn."""
    optimizers = optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]
    inner: list[Any] = [getattr(item, "optimizer", item) for item in optimizers]
    return Watch(model, inner, scaler=getattr(accelerator, "scaler", None), **options)
