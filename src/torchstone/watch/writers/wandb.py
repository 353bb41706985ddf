"""The signals of a run in Weights & Biases; the run is the user's own, made by wandb.init."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchstone.watch.alerts import Alert


class WandB:
    """Logs into a run that the user began."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def step(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({f"torchstone/{name}": value for name, value in values.items()}, step=step)

    def alert(self, alert: Alert) -> None:
        if alert.opens:  # one message for one cause
            text = f"{alert.line()}\n{alert.next_line()}"
            self._run.alert(title=f"{alert.signal} at step {alert.step}", text=text)

    def close(self) -> None:
        """The run belongs to the user, and stays open."""
