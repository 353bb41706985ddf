"""The first screen of a run: healthy or not, since when, the episodes, and charts of what moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.finding import Severity
from torchstone.core.pictures import Plot, Series
from torchstone.core.text import Text
from torchstone.watch.after.thinning import kept_points
from torchstone.watch.after.titles import column_title, named_title
from torchstone.watch.judge.episodes import worst
from torchstone.watch.learn.baselines import Baselines
from torchstone.watch.learn.journal import Judged
from torchstone.watch.measure.signal import Signal, all_signals
from torchstone.watch.record.runfile import Run

_LEVELS = {Severity.HIGH: "高", Severity.MEDIUM: "中", Severity.LOW: "低"}
_EPISODES = 5
"""Episodes on the first screen; the others are findings below it."""
_ALSO = 4
"""Signals that are named as followers of an episode; all of them are in its finding."""
_CHARTS = 9
"""Charts of the grid: three rows of three."""
_FIRST = ("loss", "grad_norm", "lr", "update_ratio", "scale")
"""Columns that a person looks at first, whatever happened."""
_SETTLED = 20
"""Steps without an alert after which a spike is over: the windows of the judge are as long."""
_LONGEST = 200_000
"""Steps up to which the usual range is worked out again: beyond them it would hold up the report."""
_USUAL_SPREADS = 3.0
"""Spreads on each side of the median that are drawn as usual."""


def run_answer(run: Run, overhead: float | None) -> Answer:
    """What a person wants to know of a run."""
    episodes = sorted(map(worst_first, run.episodes), key=lambda item: _severity(item).rank)
    steps = int(run.scalars[-1, 0]) if len(run.scalars) else 0
    severe = [item for item in episodes if _severity(item) is Severity.HIGH]
    over = bool(episodes) and _is_over(run, episodes)
    return Answer(
        headline=_headline(steps, episodes, run, over),
        state="warning" if over else "bad" if severe else "warning" if episodes else "good",
        about=_about(run),
        tiles=_tiles(run, steps, overhead),
        pictures=tuple(_charts(run)),
        lines=(*_origins(run), *(_episode(item) for item in episodes[:_EPISODES])),
        next=(f"torchstone explain watch-{str(episodes[0][0]['signal']).replace('_', '-')}",)
        if episodes
        else (),
    )


def worst_first(episode: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """An episode that a weak sign opened is told from its first severe alert on: a LOW says what moved
    early, not what went wrong."""
    level = _severity(episode)
    if _severity(episode[:1]) is not Severity.LOW or level is Severity.LOW:
        return episode
    lead = next(alert for alert in episode if _severity([alert]) is level)
    return [lead, *(alert for alert in episode if alert is not lead)]


def _origins(run: Run) -> Iterator[Text]:
    """The operator that NaN came from, with its line and rows, for each step that was run again."""
    for note in run.notes:
        if note.get("kind") == "origin":
            step = int(note["step"])
            yield Text(f"Step {step}: {note['en']}", f"第 {step} 步：{note['zh']}")


def _is_over(run: Run, episodes: list[list[dict[str, Any]]]) -> bool:
    """Did everything come back? Only a spike can: a shift, a ramp and wrong code stay what they are."""
    for alert in (item for episode in episodes for item in episode):
        values = run.column("grad_norm" if alert["signal"] == "non_finite" else "loss")
        if alert["signal"] in ("non_finite", "loss_not_finite"):
            if not np.isfinite(values[-_SETTLED:]).any():
                return False
        elif alert.get("channel") != "spike":
            return False
    return int(run.scalars[-1, 0]) - _last_step(episodes) >= _SETTLED


def _last_step(episodes: list[list[dict[str, Any]]]) -> int:
    return max(int(alert["step"]) for episode in episodes for alert in episode)


def _headline(
    steps: int, episodes: list[list[dict[str, Any]]], run: Run, over: bool = False
) -> Text:
    if not episodes:
        going = Text("so far", "目前为止") if not run.summary else Text("", "")
        return Text(
            f"Healthy: no alert in {steps:,} steps {going.en}".rstrip(),
            f"正常：{steps:,} 步{going.zh}没有告警",
        )
    first = episodes[0][0]
    step, what = int(first["step"]), column_title(str(first["signal"]))
    count = len(episodes)
    more = Text(f" ({count} episodes)", f"（共 {count} 个告警事件）") if count > 1 else Text("", "")
    signal = next((s for s in all_signals() if s.name == first["signal"]), None)
    left = Text(" left its usual range", "偏离通常范围")
    if signal is not None and signal.limits is None:  # a state such as NaN has no usual range
        left = Text("", "")
    if over:
        last = _last_step(episodes)
        return Text(
            f"Alert at step {step:,}: {what.en}{left.en}{more.en}; nothing unusual after step {last:,}",
            f"第 {step:,} 步告警：{what.zh}{left.zh}{more.zh}；第 {last:,} 步之后没有异常",
        )
    return Text(
        f"Not healthy since step {step:,}: {what.en}{left.en}{more.en}",
        f"自第 {step:,} 步起异常：{what.zh}{left.zh}{more.zh}",
    )


def _episode(episode: list[dict[str, Any]]) -> Text:
    """One cause: the alert that opened it, what followed, and what to look at."""
    first, *also = episode
    signal = next((s for s in all_signals() if s.name == first["signal"]), None)
    step, level = int(first["step"]), _severity(episode)
    en = f"Step {step} [{level}] {first.get('en', '')}"
    zh = f"第 {step} 步 [{level}] {_LEVELS[level]}：{first.get('zh', '')}"
    if also:
        names = list(dict.fromkeys(str(item["signal"]) for item in also))
        more = len(names) - _ALSO
        en += f". Also: {', '.join(named_title(name).en for name in names[:_ALSO])}"
        zh += f"。另有：{'、'.join(named_title(name).zh for name in names[:_ALSO])}"
        en, zh = (f"{en} and {more} more", f"{zh}等 {len(names)} 项") if more > 0 else (en, zh)
    if signal is not None:
        en, zh = f"{en}. Next: {signal.remedy.en}", f"{zh}。下一步：{signal.remedy.zh}"
    return Text(en, zh)


def _about(run: Run) -> tuple[Fact, ...]:
    started = str(run.header.get("started", ""))
    warm = run.header.get("warmup_steps")
    facts = [Fact(Text("started", "开始"), started)] if started else []
    if isinstance(warm, int):
        facts.append(
            Fact(Text("no alerts before", "此前不告警"), Text(f"step {warm}", f"第 {warm} 步"))
        )
    rate = run.header.get("false_alarms_per_10k")
    if isinstance(rate, (int, float)):
        label = Text("acceptable false alarms per 10k steps", "每 1 万步可接受的误报")
        facts.append(Fact(label, f"{rate:g}"))
    return tuple(facts)


def _tiles(run: Run, steps: int, overhead: float | None) -> tuple[Tile, ...]:
    episodes = run.episodes
    levels = [_severity(item) for item in episodes]
    counted = [(level, levels.count(level)) for level in Severity if level in levels]
    listed = Text(
        ", ".join(f"{count} {level}" for level, count in counted),
        "，".join(f"{_LEVELS[level]} {count}" for level, count in counted),
    )
    tiles = [
        Tile(Text("steps", "步数"), f"{steps:,}"),
        Tile(Text("alert episodes", "告警事件"), str(len(episodes)), listed,
             "bad" if Severity.HIGH in levels else "warning" if episodes else "good"),
    ]  # fmt: skip
    for name in ("loss", "grad_norm"):
        values = run.column(name)
        good = values[np.isfinite(values)]
        if len(values) and not len(good):
            tiles.append(Tile(column_title(name), "NaN", Text("at every step", "每一步"), "bad"))
        if len(good) and _ended_as_nan(run, name):
            tiles.append(_lost_tile(name, values, good))
        elif len(good):
            low, high = float(good.min()), float(good.max())
            tiles.append(Tile(column_title(name), f"{good[-1]:.4g}",
                              Text(f"last; {low:.4g} … {high:.4g}", f"最后值；{low:.4g} … {high:.4g}")))  # fmt: skip
    if overhead is not None:
        tiles.append(Tile(Text("cost of watching", "监控开销"), f"{overhead:.1%}", Text("of a step", "占单步时间")))  # fmt: skip
    return tuple(tiles)


def _ended_as_nan(run: Run, name: str) -> bool:
    """Gradients of steps that were not read are NaN in the record too: an alert tells them apart."""
    finite = np.isfinite(run.column(name))
    if name == "loss":
        return not finite[-1]
    last = float(run.scalars[finite, 0][-1])
    return any(alert["signal"] == "non_finite" and alert["step"] > last for alert in run.alerts)


def _lost_tile(name: str, values: NDArray[np.float64], good: NDArray[np.float64]) -> Tile:
    """A signal that is no longer finite, with its last finite value."""
    at = int(np.flatnonzero(np.isfinite(values))[-1]) + 1
    return Tile(
        column_title(name),
        "NaN/Inf" if name != "loss" else "NaN" if np.isnan(values[-1]) else "Inf",
        Text(
            f"since step {at + 1:,}; {good[-1]:.4g} before",
            f"自第 {at + 1:,} 步起；此前为 {good[-1]:.4g}",
        ),
        "bad",
    )


def _charts(run: Run) -> list[Plot]:
    """What a person looks at first, then every signal that raised an alert."""
    alerted = [str(alert["signal"]) for alert in run.alerts]
    wanted = dict.fromkeys((*_FIRST[:2], *alerted, *_FIRST[2:]))
    columns = [column for name in wanted for column in run.columns if column.partition("[")[0] == name]  # fmt: skip
    made = (_chart(run, column) for column in columns)
    return [plot for plot in made if plot is not None][:_CHARTS]


def _chart(run: Run, column: str) -> Plot | None:
    values = run.column(column)
    good = values[np.isfinite(values)]
    if not len(good) or (float(good.min()) == float(good.max()) and column != "lr"):
        return None
    name = column.partition("[")[0]
    signal = next((s for s in all_signals() if s.name == name), None)
    marks = [alert for alert in run.alerts if alert["signal"] == name]
    low, high = _usual(run, column, signal)
    title = named_title(column)
    # an angle between two steps has no value at the first one: that is no event
    begin = int(np.isfinite(values).argmax())
    keep = [row for row in kept_points(run, column).tolist() if row >= begin]
    series = Series(
        title, tuple(run.scalars[keep, 0].tolist()), tuple(values[keep].tolist()),
        signal.unit if signal else "", "",
        marks=tuple(float(alert["step"]) for alert in marks),
        mark_names=tuple(Text(str(alert.get("en", "")), str(alert.get("zh", ""))) for alert in marks),
        low=tuple(low[row] for row in keep) if low else (),
        high=tuple(high[row] for row in keep) if high else (),
    )  # fmt: skip
    return Plot(title, (series,), "step", series.unit, log_y=bool((good > 0).all()))


def _usual(
    run: Run, column: str, signal: Signal | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The range that was usual before each step, as the alerts quote it; NaN before it is known."""
    if signal is None or signal.limits is None or len(run.scalars) > _LONGEST:
        return (), ()
    warm = run.header.get("warmup_steps")
    baselines = Baselines([signal.limits], warm if isinstance(warm, int) else 100)
    stretches = _stretches(run, signal.phase)
    low: list[float] = []
    high: list[float] = []
    for step, value in zip(run.scalars[:, 0], run.column(column), strict=True):
        known = baselines.seen >= baselines.warmup
        centre, width = float(baselines.centre[0]), _USUAL_SPREADS * float(baselines.width[0])
        # spreads are those of the logarithm: downwards they are shorter by the same ratio
        below = centre * centre / (centre + width) if centre > 0 else centre - width
        low.append(below if known else np.nan)
        high.append(centre + width if known else np.nan)
        baselines.push(np.array([value]), stretches.get(int(step), 0.0))
    return tuple(low), tuple(high)


def _stretches(run: Run, phase: str) -> dict[int, float]:
    """How much thresholds gave way at each step, as it was when the run was live."""
    numbers = {int(item["number"]) for item in run.series if item["phase"] == phase}
    return {
        entry.step: entry.stretch
        for entry in run.entries()
        if isinstance(entry, Judged) and entry.series in numbers
    }


def _severity(episode: Sequence[dict[str, Any]]) -> Severity:
    known = {str(level): level for level in Severity}
    return worst(known.get(str(alert.get("severity")), Severity.MEDIUM) for alert in episode)
