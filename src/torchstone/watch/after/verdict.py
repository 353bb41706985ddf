"""Two runs in one sentence: which one is better, where they part, and what was set otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.evidence import State
from torchstone.core.pictures import Evidence
from torchstone.core.text import NOTHING, Text
from torchstone.watch.after.titles import column_title
from torchstone.watch.record.runfile import Run

_LAST = 0.1
"""Share of the common steps whose losses are compared: one step says little."""
_FEWEST = 20
_SMALL = 0.01
"""Relative difference below which nobody would call one run better."""
_SURE = 3.0
"""Standard errors of the difference of two medians: one in 400 pairs of equal runs is beyond."""
_MEDIAN_ERROR = 1.2533
"""Standard error of a median over that of a mean, for a normal distribution."""
_MAD = 1.4826
_NAMED = 4


@dataclass(frozen=True, slots=True)
class End:
    """The loss of one run over the last steps that both have."""

    steps: int
    last: float
    median: float
    error: float
    lost_at: int = 0
    """The step from which on the loss is no number; 0: it ends as one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How B compares with A."""

    state: State
    said: Text
    a: End | None = None
    b: End | None = None


def judge_pair(a: Run, b: Run, is_equal: bool) -> Verdict:
    """By the losses at the end of what both ran."""
    if "loss" not in a.columns or "loss" not in b.columns or not len(a.scalars) or not len(b.scalars):  # fmt: skip
        return Verdict(
            "plain", Text("the runs have no loss to compare", "两次运行没有可比较的损失")
        )
    steps, left, right = np.intersect1d(a.scalars[:, 0], b.scalars[:, 0], return_indices=True)
    if not len(steps):
        return Verdict("plain", Text("the runs have no step in common", "两次运行没有共同的步"))
    losses = a.column("loss")[left], b.column("loss")[right]
    first, second = (_end(steps, values) for values in losses)
    if is_equal and np.allclose(*losses, rtol=_SMALL, atol=0.0, equal_nan=True):
        return Verdict("good", Text("B repeats A: no column differs by more than 1 %",
                                    "B 与 A 一致：各列相差均不超过 1%"), first, second)  # fmt: skip
    return _judged(first, second)


def _judged(a: End, b: End) -> Verdict:
    if a.lost_at or b.lost_at:
        return _judged_lost(a, b)
    values = f"{a.median:.4g} → {b.median:.4g}"
    over = Text(f"median of the last {b.steps} common steps", f"最后 {b.steps} 个共同步的中位数")
    gap = b.median - a.median
    scale = max(abs(a.median), abs(b.median), 1e-30)
    if abs(gap) <= max(_SMALL * scale, _SURE * float(np.hypot(a.error, b.error))):
        return Verdict("plain", Text(f"No clear winner: loss {values} ({over.en})",
                                     f"没有明显差别：损失 {values}（{over.zh}）"), a, b)  # fmt: skip
    word = Text("worse", "更差") if gap > 0 else Text("better", "更好")
    state: State = "bad" if gap > 0 else "good"
    return Verdict(state, Text(f"B is {word.en} than A: loss {values} ({over.en})",
                               f"B 比 A {word.zh}：损失 {values}（{over.zh}）"), a, b)  # fmt: skip


def _judged_lost(a: End, b: End) -> Verdict:
    if a.lost_at and b.lost_at:
        return Verdict("bad", Text(
            f"Both runs end without a loss: A from step {a.lost_at:,}, B from step {b.lost_at:,} on",
            f"两次运行的损失最终都不是有限值：A 自第 {a.lost_at:,} 步起，B 自第 {b.lost_at:,} 步起",
        ), a, b)  # fmt: skip
    if b.lost_at:
        said = Text(f"B is worse than A: its loss is NaN or infinite from step {b.lost_at:,} on",
                    f"B 比 A 更差：自第 {b.lost_at:,} 步起损失为 NaN 或无穷")  # fmt: skip
        return Verdict("bad", said, a, b)
    said = Text(f"B is better than A, whose loss is NaN or infinite from step {a.lost_at:,} on",
                f"B 比 A 更好：A 自第 {a.lost_at:,} 步起损失为 NaN 或无穷")  # fmt: skip
    return Verdict("good", said, a, b)


def _end(steps: NDArray[np.float64], values: NDArray[np.float64]) -> End:
    count = min(len(values), max(_FEWEST, int(len(values) * _LAST)))
    tail = values[-count:]
    finite = np.isfinite(values)
    lost = 0
    if not finite[-1]:
        good = np.flatnonzero(finite)
        lost = int(steps[good[-1] + 1 if len(good) else 0])
    good_tail = tail[np.isfinite(tail)]
    if not len(good_tail):
        return End(count, float(values[-1]), np.nan, 0.0, lost)
    middle = float(np.median(good_tail))
    spread = _MAD * float(np.median(np.abs(good_tail - middle)))
    error = _MEDIAN_ERROR * spread / float(np.sqrt(len(good_tail)))
    return End(count, float(values[-1]), middle, error, lost)


def differing_settings(a: Run, b: Run) -> list[tuple[str, str, str]]:
    """Name, value in A, value in B of what was set otherwise."""
    left, right = _settings(a.header), _settings(b.header)
    names = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    if "optimizers" in names:  # two kinds of optimizers do not have the same settings
        names = [name for name in names if name in left and name in right]
    return [(name, left.get(name, "–"), right.get(name, "–")) for name in names]


_KEPT = ("torchstone", "python", "torch", "models", "optimizers", "scalers", "schedulers", "warmup_steps", "alert_window")  # fmt: skip


def _settings(header: Mapping[str, Any]) -> dict[str, str]:
    found = {key: _shown(header[key]) for key in _KEPT if key in header}
    own = header.get("settings")
    if isinstance(own, dict):
        found |= {str(key): _shown(value) for key, value in own.items()}
    return found


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def pair_answer(
    a: Run, b: Run, apart: list[tuple[int, str]], pictures: tuple[Evidence, ...]
) -> Answer:
    """The first screen of a comparison."""
    verdict = judge_pair(a, b, is_equal=not apart)
    where = NOTHING
    if apart:
        step, column = apart[0]
        title = column_title(column)
        where = Text(f". They part at step {step:,} ({title.en})",
                     f"。两次运行自第 {step:,} 步起分开（{title.zh}）")  # fmt: skip
    return Answer(
        headline=Text(verdict.said.en + where.en, verdict.said.zh + where.zh),
        state=verdict.state,
        about=(
            Fact(Text("A", "A"), str(a.path.parent)), Fact(Text("B", "B"), str(b.path.parent)),
        ),
        tiles=tuple(_tiles(a, b, verdict)),
        pictures=pictures,
        lines=tuple(_lines(a, b, apart)),
    )  # fmt: skip


def _tiles(a: Run, b: Run, verdict: Verdict) -> Iterator[Tile]:
    if verdict.a is not None and verdict.b is not None:
        yield Tile(
            Text("last loss, A | B", "最后的损失，A | B"),
            f"{verdict.a.last:.4g} | {verdict.b.last:.4g}",
            Text("at the last common step", "最后一个共同步"), verdict.state,
        )  # fmt: skip
    count = (len(a.scalars), len(b.scalars))
    yield Tile(Text("steps, A | B", "步数，A | B"), f"{count[0]:,} | {count[1]:,}")
    alerts = (len(a.episodes), len(b.episodes))
    yield Tile(Text("alerts, A | B", "告警，A | B"), f"{alerts[0]} | {alerts[1]}", "",
               "bad" if alerts[1] > alerts[0] else "plain")  # fmt: skip


def _lines(a: Run, b: Run, apart: list[tuple[int, str]]) -> Iterator[Text]:
    changed = differing_settings(a, b)
    if changed:
        said = "; ".join(f"{name} {one} → {other}" for name, one, other in changed[:_NAMED])
        more = len(changed) - _NAMED
        rest = Text(f" and {more} more", f"，另有 {more} 项") if more > 0 else NOTHING
        yield Text(f"settings that differ: {said}{rest.en}", f"不同的设置：{said}{rest.zh}")
    elif apart:
        yield Text(
            "recorded settings are the same: look at data, seeds and code",
            "记录下来的设置相同：请检查数据、随机种子与代码",
        )
    for name, run in (("A", a), ("B", b)):
        for episode in run.episodes[:1]:
            first = episode[0]
            step = int(first["step"])
            yield Text(f"{name}, step {step}: {first.get('en', '')}", f"{name}，第 {step} 步：{first.get('zh', '')}")  # fmt: skip
