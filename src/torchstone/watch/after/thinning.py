"""Fewer points of a curve to draw, such that nothing that happened is lost."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.record.runfile import Run

POINTS = 800
_RAW = 2000  # points of alert windows, for a page that stays small however many alerts there were


def thin_curve(
    values: NDArray[np.float64], always: NDArray[np.int64] | None = None, points: int = POINTS
) -> NDArray[np.int64]:
    """Places of the points to keep: the extremes of every bucket, both ends, and those in `always`.

    A bucket with a value that is not finite keeps the first such value too: a gap stays a gap.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    kept = [0, count - 1, *(always.tolist() if always is not None else ())]
    finite = np.isfinite(values)
    for bucket in np.array_split(np.arange(count), max(points // 3, 1)):
        good, bad = bucket[finite[bucket]], bucket[~finite[bucket]]
        kept += bad[:1].tolist()
        if len(good):
            kept += [int(good[values[good].argmin()]), int(good[values[good].argmax()])]
    return np.unique(np.array(kept, np.int64))


def around_alerts(
    steps: NDArray[np.float64], alerts: Iterable[int], window: int
) -> NDArray[np.int64]:
    """Places of alert steps, and of all steps less than a window from one, the first alerts first."""
    found: dict[int, None] = {}
    for alert in alerts:
        found.update(dict.fromkeys(np.flatnonzero(steps == alert).tolist()))
        if len(found) < _RAW:
            near = np.flatnonzero(np.abs(steps - alert) <= window)
            found.update(dict.fromkeys(near.tolist()))
    return np.array(sorted(found), np.int64)


def kept_points(run: Run, column: str) -> NDArray[np.int64]:
    """Rows of a run to draw: every extreme, every alert step, and all steps near an alert.

    NaN in a loss is an event. In any other column it says that the step was not read (a gradient
    norm that is not finite is recorded as infinite), and is no point of the curve.
    """
    values = run.column(column)
    name = column.partition("[")[0]
    alerted = np.array([int(a["step"]) for a in run.alerts if a["signal"] == name], np.int64)
    drawn = ~np.isnan(values) | (name == "loss") | np.isin(run.scalars[:, 0], alerted)
    window = run.header.get("alert_window")
    near = around_alerts(
        run.scalars[drawn, 0],
        (int(alert["step"]) for alert in run.alerts),
        window if isinstance(window, int) else 50,
    )
    return np.flatnonzero(drawn)[thin_curve(values[drawn], near)]
