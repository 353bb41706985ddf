"""A running watch in the terminal: one line for every signal, the last alerts below."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.after.report import count_episodes
from torchstone.watch.alerts import short
from torchstone.watch.record.runfile import Run

_BARS = "▁▂▃▄▅▆▇█"
_HIDDEN = ("scale", "batch", "skipped")
_ALERTS = 6


def screen(run: Run, width: int, lang: str = "en") -> str:
    """The whole screen as text."""
    steps = int(run.scalars[-1, 0]) if len(run.scalars) else 0
    state = Text("ended", "已结束") if run.summary else Text("running", "运行中")
    head = Text(
        f"{run.path.parent}  step {steps}  {state.en}  {count_episodes(run)} alert episodes",
        f"{run.path.parent}  第 {steps} 步  {state.zh}  告警 {count_episodes(run)} 次",
    )
    lines = [head.get(lang)[:width], ""]
    room = max(width - 42, 10)
    for column in run.columns[1:]:
        values = run.column(column)
        good = values[np.isfinite(values)]
        if column in _HIDDEN or not len(good):
            continue
        lines.append(f"{column[:18]:<18} {short(float(good[-1])):>10} {spark(values, room)}")
    if run.alerts:
        lines.append("")
    for episode in run.episodes[-_ALERTS:]:
        said = str(episode[0].get(lang if lang in ("en", "zh") else "en", ""))
        lines.append(f"[ALERT] Step {episode[0]['step']} | {said}"[:width])
        if names := ", ".join(f"{a['signal']}@{a['step']}" for a in episode[1:]):
            also = Text("also", "另有").get(lang)
            lines.append(f"        {also}: {names}"[:width])
    return "\n".join(lines) + "\n"


def spark(values: NDArray[np.float64], width: int) -> str:
    """The last values as bars, on a log scale when all are positive; a dot where there is none."""
    recent = values[-width * 8 :]
    parts = np.array_split(recent, min(width, len(recent))) if len(recent) else []
    with np.errstate(all="ignore"):
        means = np.array([np.nanmax(p) if np.isfinite(p).any() else np.nan for p in parts])
    good = means[np.isfinite(means)]
    if not len(good):
        return ""
    if (good > 0).all():
        means = np.log(means)
        good = np.log(good)
    low, high = float(good.min()), float(good.max())
    size = (high - low) or 1.0
    return "".join(
        _BARS[min(int((m - low) / size * 8), 7)] if np.isfinite(m) else "·" for m in means
    )
