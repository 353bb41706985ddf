"""Compare two runs: where their curves diverge, and the alerts of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchstone._version import __version__
from torchstone.core.measure import Measure
from torchstone.core.pictures import Plot, Series, Table
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.watch.after.report import alert_text, count_episodes
from torchstone.watch.after.thinning import around_alerts, thin_curve
from torchstone.watch.after.titles import RECORDED, column_title, measure
from torchstone.watch.after.verdict import pair_answer
from torchstone.watch.measure.signal import all_signals
from torchstone.watch.record.runfile import Run

_POINTS = 600
_PART = 0.01
_IN_A_ROW = 5
_USUAL = ("loss", "grad_norm")


def compare_watched(first: Run, second: Run) -> Report:
    """Curves of both runs, the step at which they diverge, layers and alerts."""
    both = [c for c in first.columns[1:] if c in second.columns]
    parts = {column: parts_at(first, second, column) for column in both}
    apart = sorted((step, column) for column, step in parts.items() if step is not None)
    shown = [column for _, column in apart] or [c for c in _USUAL if c in both]
    measures = [_where(apart, [c for c in both if parts[c] is None])]
    measures += [m for column in shown if (m := _curve(first, second, column)) is not None]
    measures.append(_alerts(first, second))
    if (layers := _layers(first, second)) is not None:
        measures.append(layers)
    charts = (_plot(first, second, column) for column in _USUAL if column in both)
    pictures = tuple(plot for plot in charts if plot is not None)
    return Report(
        tool="watch", subject=f"{first.path.parent} | {second.path.parent}",
        measures=tuple(measures), environment={"torchstone": __version__},
        answer=pair_answer(first, second, apart, pictures),
    )  # fmt: skip


def parts_at(a: Run, b: Run, column: str) -> int | None:
    """The first of five steps in a row at which two runs differ by more than a hundredth.

    NaN and a number differ, and so do infinity and a number.
    """
    steps, left, right = _joined(a, b, column)
    if _is_read(column) and (_is_thinned(a) or _is_thinned(b)):  # NaN where a step was not read
        both = ~(np.isnan(left) | np.isnan(right))
        steps, left, right = steps[both], left[both], right[both]
    apart = _differ(left, right)
    for place in range(len(steps) - _IN_A_ROW + 1):
        if apart[place : place + _IN_A_ROW].all():
            return int(steps[place])
    return None


def _differ(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        far = np.abs(left - right) > _PART * np.maximum(np.abs(left), np.abs(right))
    kinds = (np.isnan, np.isposinf, np.isneginf)
    odd = np.any([kind(left) != kind(right) for kind in kinds], axis=0)
    return np.asarray(odd | (far & np.isfinite(left) & np.isfinite(right)))


def _is_read(column: str) -> bool:
    """The column comes from gradients or weights, which are not read at every step."""
    name = column.partition("[")[0]
    return any(s.name == name and s.phase != "call" for s in all_signals())


def _is_thinned(run: Run) -> bool:
    return any(note.get("kind") == "thinned" for note in run.notes)


def _joined(
    a: Run, b: Run, column: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    steps, left, right = np.intersect1d(a.scalars[:, 0], b.scalars[:, 0], return_indices=True)
    return steps, a.column(column)[left], b.column(column)[right]


def _curve(a: Run, b: Run, column: str) -> Measure | None:
    plot = _plot(a, b, column)
    if plot is None:
        return None
    last = next((v for v in reversed(plot.series[1].y) if np.isfinite(v)), 0.0)
    return measure(
        f"compare_{column}", float(last), "", column_title(column), (plot,),
        Text("last value of B; both curves", "B 的最后一个值；两条曲线"),
    )  # fmt: skip


def _plot(a: Run, b: Run, column: str) -> Plot | None:
    """Both curves over one scale; steps that were not read are not points of it."""
    series = []
    for name, run in (("A", a), ("B", b)):
        values = run.column(column)
        if not np.isfinite(values).any():
            return None
        alerts = around_alerts(run.scalars[:, 0], (int(e["step"]) for e in run.alerts), 0)
        keep = thin_curve(values, alerts, _POINTS)
        keep = keep[[bool(np.isfinite(values[row])) or _is_lost(run, column, row) for row in keep]]
        marks = tuple(float(e["step"]) for e in run.alerts if e["signal"] == column)
        series.append(Series(
            f"{name}: {run.path.parent.name}", tuple(run.scalars[keep, 0]), tuple(values[keep]), "",
            RECORDED, marks=marks,
        ))  # fmt: skip
    return Plot(column_title(column), tuple(series), "step", "")


def _is_lost(run: Run, column: str, row: int) -> bool:
    """Is what is not a number there the run's own value, and not a step that was not read?"""
    if not _is_read(column):
        return not np.isfinite(run.column("loss")[row]) if "loss" in run.columns else True
    begun = [int(e["step"]) for e in run.alerts if e["signal"] in _NOT_FINITE]
    return bool(begun) and run.scalars[row, 0] >= min(begun)


_NOT_FINITE = ("non_finite", "loss_not_finite")


def _where(apart: list[tuple[int, str]], equal: list[str]) -> Measure:
    """The first step at which the runs diverge, and that of each column; or that they do not."""
    rule = Text(
        "first of five steps in a row that differ by more than 1 %", "连续五步相差超过 1% 的第一步"
    )
    if not apart:
        return measure("note", 0.0, "", Text("the two runs", "两次运行"), (), Text(
            f"no difference of more than 1 % over five steps in a row, in {len(equal)} columns",
            f"{len(equal)} 列中没有连续五步超过 1% 的差异",
        ))  # fmt: skip
    names = ", ".join(equal) or "-"
    table = Table(
        Text("Columns that diverge", "出现差异的列"),
        (Text("signal", "信号"), Text("column", "列"), Text("from step", "自第几步起")),
        tuple((column_title(column), column, step) for step, column in apart),
        Text(f"{rule.en}; equal: {names}", f"{rule.zh}；相同：{names}"),
    )
    return measure(
        "parts_at", float(apart[0][0]), "", Text("the runs diverge at step", "两次运行开始出现差异的步"),
        (table,), rule,
    )  # fmt: skip


def _alerts(a: Run, b: Run) -> Measure:
    rows = []
    for name, run in (("A", a), ("B", b)):
        rows += [(name, int(e[0]["step"]), alert_text(e[0], e[1:])) for e in run.episodes]
    table = Table(
        Text("Alerts of both runs", "两次运行的告警"),
        (Text("run", "运行"), Text("step", "步"), Text("alert", "告警")), tuple(rows), RECORDED,
    )  # fmt: skip
    return measure(
        "episodes_difference", float(count_episodes(b) - count_episodes(a)), "",
        Text("more alerts in B than in A", "B 比 A 多出的告警事件"), (table,),
    )  # fmt: skip


def _layers(a: Run, b: Run) -> Measure | None:
    """Layers whose signals differ most at the last step that both recorded."""
    if not a.layers or not b.layers or a.actors[:1] != b.actors[:1]:
        return None
    left = {step: v for step, n, v in a.layers if n == 0}
    right = {step: v for step, n, v in b.layers if n == 0}
    shared = sorted(set(left) & set(right))
    if not shared or left[shared[-1]].shape != right[shared[-1]].shape:
        return None
    step = shared[-1]
    with np.errstate(all="ignore"):
        ratio = np.abs(np.log2(right[step] / left[step]))
    one_is_nan = np.isnan(left[step]) != np.isnan(right[step])
    if _is_thinned(a) or _is_thinned(b):  # NaN where a step was not read
        one_is_nan[:] = False
    ratio = np.where(one_is_nan, np.inf, np.nan_to_num(ratio, nan=0.0, posinf=np.inf))
    names, signals = a.actors[0]["layers"], a.actors[0]["signals"]
    order = np.argsort(-ratio, axis=None)[:10]
    rows = []
    for place in order:
        i, j = np.unravel_index(int(place), ratio.shape)
        if ratio[i, j] > 0.1:
            rows.append(
                (signals[int(i)], names[int(j)], _cell(left[step][i, j]), _cell(right[step][i, j]))
            )
    table = Table(
        Text(f"Layers that differ most at step {step}", f"第 {step} 步差异最大的层"),
        (Text("signal", "信号"), Text("layer", "层"), "A", "B"),
        tuple(rows),
        RECORDED,
    )
    return measure("layers_that_differ", float(len(rows)), "", Text("layers that differ", "有差异的层"), (table,))  # fmt: skip


def _cell(value: float) -> float | str:
    return float(value) if np.isfinite(value) else str(value)
