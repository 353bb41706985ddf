"""What a watch tells a person of how things stand, and how a run went."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torchstone.core.text import Text
from torchstone.watch.alerts import short
from torchstone.watch.learn.baselines import Baselines
from torchstone.watch.measure.learner import JudgedOptimizer


def progress_line(step: int, watched: JudgedOptimizer, status: str) -> str:
    """How things stand, every now and then."""
    baselines = watched.learners["gradient"].baselines
    usual = f"{short(float(baselines.centre[0]))}±{short(float(baselines.width[0]))}"
    norm = short(watched.last_norm)
    return f"[Monitor] Step {step} | grad_norm: {norm} (baseline: {usual}) | Status: {status}"


def ended_text(steps: int, episodes: int, skipped: int, thinned: Text, folder: Path | None) -> Text:
    """How a run went, in one line."""
    alerts = "no alerts" if not episodes else f"{episodes} alert episode{'s' * (episodes > 1)}"
    en = [f"finished: {steps:,} steps, {alerts}"]
    zh = [f"结束：共 {steps:,} 步，" + (f"告警 {episodes} 次" if episodes else "没有告警")]
    if skipped:
        en.append(f"{skipped} optimizer step{'s' * (skipped > 1)} skipped")
        zh.append(f"跳过 {skipped} 次优化器更新")
    if thinned.en:
        en.append(thinned.en)
        zh.append(thinned.zh)
    if folder is not None:
        en.append(f"report: torchstone watch {folder}")
        zh.append(f"查看报告：torchstone watch {folder}")
    return Text("; ".join(en), "；".join(zh))


def baseline_of(
    optimizers: Iterable[JudgedOptimizer], losses: Baselines, loss_column: int | None
) -> dict[str, dict[str, float]]:
    """The usual value and spread of the signals of the whole run."""
    found: dict[str, dict[str, float]] = {}
    optimizers = list(optimizers)
    for watched in optimizers:
        learner = watched.learners["gradient"]
        for signal, start, _ in learner.spans:
            if signal.of == "run" and learner.baselines.past.has_begun(start):
                name = signal.name if len(optimizers) == 1 else f"{signal.name}[{watched.name}]"
                found[name] = _usual(learner.baselines, start)
    if loss_column is not None and losses.past.has_begun(loss_column):
        found["loss"] = _usual(losses, loss_column)
    return found


def _usual(baselines: Baselines, column: int) -> dict[str, float]:
    centre, width = float(baselines.centre[column]), float(baselines.width[column])
    return {"median": float(f"{centre:.4g}"), "spread": float(f"{width:.4g}")}
