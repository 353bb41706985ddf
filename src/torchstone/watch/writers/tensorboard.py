"""The signals of a run in TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from torchstone.watch.alerts import Alert


class TensorBoard:
    """Writes one scalar for every signal, and alerts as text."""

    def __init__(self, folder: str, **options: Any) -> None:
        self._writer = SummaryWriter(folder, **options)

    def step(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"torchstone/{name}", value, step)

    def alert(self, alert: Alert) -> None:
        self._writer.add_text("torchstone/alerts", alert.line(), alert.step)

    def close(self) -> None:
        self._writer.close()
