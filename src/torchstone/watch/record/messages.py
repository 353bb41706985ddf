"""What a watch tells a person: what it found, what it does not watch, how things stand."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchstone.core.text import Text
from torchstone.watch.judge.alerts import short
from torchstone.watch.learn.baselines import Baselines
from torchstone.watch.listen.discover import Found
from torchstone.watch.measure.watched_optimizer import WatchedOptimizer

Note = tuple[Text, int]
"""A sentence and its level of logging."""


def found_notes(found: Found) -> Iterator[Note]:
    """The parts of the training step by the names they were found under."""
    groups = (("model", found.models), ("optimizer", found.optimizers),
              ("scaler", found.scalers), ("scheduler", found.schedulers))  # fmt: skip
    parts = ", ".join(
        f"{kind} {name} ({type(item).__name__})" for kind, group in groups for name, item in group
    )
    if parts:
        yield Text(f"watching: {parts}", f"正在监控：{parts}"), logging.INFO
    if not found.models:
        yield (
            Text(
                "no model found, so layers are named after optimizer groups; pass model=…",
                "未找到模型，各层以优化器参数组命名；可传入 model=…",
            ),
            logging.WARNING,
        )


def unwatched_notes(watched: WatchedOptimizer, every: int) -> Iterator[Note]:
    """What of an optimizer is not read, or not as it should be, and why."""
    if fallback := getattr(watched.reader, "reason", ""):
        yield (
            Text(
                f"the C pass is not available, exponents are counted with torch every {every} steps: {fallback}",
                f"C 代码不可用，改用 torch 每 {every} 步统计一次指数：{fallback}",
            ),
            logging.INFO,
        )
    for item in watched.unwatched:
        yield (
            Text(
                f"not watched: '{item.name}': {item.reason.en}",
                f"未监控：'{item.name}'：{item.reason.zh}",
            ),
            logging.INFO,
        )
    if not watched.parameters:
        yield (
            Text(
                f"{watched.name} has no parameters that can be monitored",
                f"{watched.name} 没有可监控的参数",
            ),
            logging.WARNING,
        )


def progress_line(step: int, watched: WatchedOptimizer, status: str) -> str:
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
    optimizers: Iterable[WatchedOptimizer], losses: Baselines, loss_column: int | None
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
