"""The signals of a run in MLflow; the run is the user's own, made by mlflow.start_run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mlflow import MlflowClient

from torchstone.watch.alerts import Alert


class MLflow:
    """Logs into a run that the user began: metrics for the signals, and a file of alerts."""

    def __init__(self, run: Any, client: MlflowClient | None = None) -> None:
        self._id: str = run.info.run_id
        self._client = client or MlflowClient()
        self._alerts: list[str] = []

    def step(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            if not math.isnan(value):  # some of its stores refuse NaN; the alert tells of it
                self._client.log_metric(self._id, f"torchstone/{name}", value, step=step)

    def alert(self, alert: Alert) -> None:
        if alert.opens:  # one line for one cause
            self._alerts += [alert.line(), alert.next_line()]
            text = "\n".join(self._alerts) + "\n"
            self._client.log_text(self._id, text, "torchstone/alerts.txt")

    def close(self) -> None:
        """The run belongs to the user, and stays open."""
