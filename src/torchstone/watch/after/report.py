"""A recorded run as a report: curves with alerts marked, layers over steps, exponents, what if."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone._version import __version__
from torchstone.core.evidence import Command
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Heatmap, Plot, Series, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.runtime.number_formats import NumberFormat
from torchstone.watch.after.answer import run_answer, worst_first
from torchstone.watch.after.exponents import asked_first, exponents
from torchstone.watch.after.replay import replay
from torchstone.watch.after.thinning import kept_points
from torchstone.watch.after.titles import RECORDED, measure, named_title
from torchstone.watch.judge.episodes import worst
from torchstone.watch.measure.signal import all_signals
from torchstone.watch.record.runfile import Run

_COLUMNS = 48
_ROWS = 40
_AROUND = 100


def report_of(run: Run, asked: tuple[NumberFormat, int | None] | None = None) -> Report:
    """Everything a run shows."""
    return Report(
        tool="watch",
        subject=str(run.path.parent),
        findings=tuple(_finding(run, episode) for episode in run.episodes),
        measures=(
            *asked_first(run, asked),
            *_totals(run),
            *_curves(run),
            *_layers(run),
            *exponents(run),
        ),
        gaps=tuple(_gaps(run)),
        environment={"torchstone": __version__, "run": str(run.header.get("started", ""))},
        answer=run_answer(run, _overhead(run)),
    )


def _overhead(run: Run) -> float | None:
    """The share of a step that watching took; None where it was not recorded."""
    own, whole = _number(run.summary.get("own_seconds")), _number(run.summary.get("all_seconds"))
    return own / whole if whole > 0 else None


def _totals(run: Run) -> list[Measure]:
    steps = int(run.scalars[-1, 0]) if len(run.scalars) else 0
    episodes = count_episodes(run)
    dial = _number(run.header.get("false_alarms_per_10k"), 2.0)
    rate = episodes / steps * 1e4 if steps else 0.0
    found = [
        measure("steps", float(steps), "", Text("steps", "步数")),
        measure(
            "alert_episodes", float(episodes), "", Text("alert episodes", "告警事件数")
        ),
        measure(
            "episodes_per_10k", rate, "/10k",
            Text(f"episodes in 10k steps (asked for at most {dial:g} false ones)",
                 f"每 1 万步的告警次数（允许误报不超过 {dial:g} 次）"),
            how=Text("an upper bound on false alarms: all episodes count", "误报率的上界：所有告警都计入"),
        ),
    ]  # fmt: skip
    overhead = _overhead(run)
    if overhead is not None:
        found.append(measure(
                "overhead", overhead, "", Text("share of a step spent watching", "监控占一步的比例"),
                how=Text("wall clock of the last steps", "最近若干步的墙钟时间"),
            ))  # fmt: skip
    return found


def count_episodes(run: Run) -> int:
    """How many causes there were alerts of."""
    return len(run.episodes)


def _curves(run: Run) -> list[Measure]:
    found = []
    steps = run.scalars[:, 0] if len(run.scalars) else np.zeros(0)
    for column in run.columns[1:]:
        values = run.column(column)
        good = values[np.isfinite(values)]
        if not len(good) or (column in ("scale", "skipped", "batch") and len(set(good)) == 1):
            continue
        name = column.partition("[")[0]
        marks = tuple(float(a["step"]) for a in run.alerts if a["signal"] == name)
        keep = kept_points(run, column)
        unit = next((s.unit for s in all_signals() if s.name == name), "")
        points = (tuple(steps[keep]), tuple(values[keep]))
        series = Series(named_title(column), *points, unit, RECORDED, marks=marks)
        found.append(measure(
            column, float(good[-1]), unit, named_title(column),
            (Plot(named_title(column), (series,), "step", unit, log_y=bool((good > 0).all())),),
        ))  # fmt: skip
    return found


def _layers(run: Run) -> list[Measure]:
    found = []
    for place, actor in enumerate(run.actors):
        names = [str(name) for name in actor.get("layers", [])]
        signals = [str(name) for name in actor.get("signals", [])]
        frames = [(step, v) for step, n, v in run.layers if n == place and v.shape == (len(signals), len(names))]  # fmt: skip
        if not frames:
            continue
        chosen = [
            frames[i] for i in np.unique(np.linspace(0, len(frames) - 1, _COLUMNS).astype(int))
        ]
        cube = np.array([values for _, values in chosen])
        for i, name in enumerate(signals):
            if (picture := _heat(name, names, [s for s, _ in chosen], cube[:, i])) is not None:
                tail = "" if place == 0 else f"[{actor.get('name')}]"
                # steps beyond the budget are not read: the last one that was speaks
                read = [row[np.isfinite(row)] for row in cube[:, i] if np.isfinite(row).any()]
                good = read[-1]
                found.append(measure(
                    f"layers_{name}{tail}", float(np.median(good)), "",
                    _layer_title(name, tail), (picture,),
                    Text("median of the layers at the last step that was read", "最后读取步各层的中位数"),
                ))  # fmt: skip
    return found


def _layer_title(name: str, tail: str) -> Text:
    title = named_title(name)
    return Text(f"{title.en} by layer{tail}", f"各层{title.zh}{tail}")


def _heat(name: str, layers: list[str], steps: list[int], values: NDArray[np.float64]) -> Heatmap | None:  # fmt: skip
    """Layers that moved most come first when there are more than fit."""
    good = np.isfinite(values) & (values > 0)
    if not good.any():
        return None
    logs = np.log(np.where(good, values, 1.0))
    moved = np.where(good, logs, -1e9).max(axis=0) - np.where(good, logs, 1e9).min(axis=0)
    order = np.argsort(-moved)[:_ROWS]
    order = np.sort(order)
    title = named_title(name)
    return Heatmap(
        Text(f"{title.en}, layer by step", f"{title.zh}，层 × 步"),
        tuple(layers[i] for i in order), tuple(str(step) for step in steps),
        tuple(tuple(None if not np.isfinite(v) else float(v) for v in values[:, i]) for i in order),
        "", RECORDED, log=True, x_name=Text("step", "步"),
    )  # fmt: skip


def _finding(run: Run, episode: list[dict[str, Any]]) -> Finding:
    """An episode: its leading alert, with the others as evidence."""
    alert, *also = worst_first(episode)
    name = str(alert.get("signal", ""))
    signal = next((s for s in all_signals() if s.name == name), None)
    step = int(alert.get("step", 0))
    layer = str(alert.get("layer", ""))
    what = Message(f"watch.{name}", alert_text(alert, also))
    evidence: list[Evidence] = list(_around(run, name, layer, step))
    if alert.get("evidence"):
        evidence.append(
            Command(f"cat {run.path.parent / str(alert['evidence']) / 'evidence.json'}")
        )
    evidence.append(Table(
        Text("The alerts of this episode", "该事件的告警"),
        (Text("step", "步"), Text("signal", "信号"), Text("layer", "层"), Text("value", "数值"),
         Text("usual", "通常"), Text("spread", "离散度"), Text("severity", "严重程度")),
        tuple((int(a["step"]), str(a["signal"]), str(a.get("layer", "")) or None,
               _number(a.get("value"), None), _number(a.get("centre"), None),
               _number(a.get("width"), None), str(_severity(a))) for a in episode), RECORDED,
    ))  # fmt: skip
    return Finding(
        rule=f"watch-{name.replace('_', '-')}",
        name=name.replace("_", "-"),
        severity=worst(map(_severity, episode)),
        confidence=Confidence.LIKELY if alert.get("channel") else Confidence.CERTAIN,
        what=what,
        why=Message("watch.why", signal.why if signal else Text("", "")),
        remedy=Message("watch.remedy", signal.remedy if signal else Text("", "")),
        location=Location(module=layer, step=step),
        evidence=tuple(evidence),
        fingerprint=fingerprint(name, layer, str(step)),
        tool="watch",
    )


def alert_text(alert: dict[str, Any], also: list[dict[str, Any]]) -> Text:
    """What the first alert said, and which signals followed at which steps."""
    en, zh = str(alert.get("en", "")), str(alert.get("zh", ""))
    if also:
        names = [(str(a["signal"]), int(a["step"])) for a in also]
        en += " | also: " + ", ".join(f"{name} (step {step})" for name, step in names)
        zh += " | 另有：" + "、".join(f"{name}（第 {step} 步）" for name, step in names)
    return Text(en, zh)


def _of_layer(run: Run, name: str, layer: str) -> Series | None:
    """One signal of one layer, as often as it was recorded."""
    for place, actor in enumerate(run.actors):
        signals, layers = list(actor.get("signals", [])), list(actor.get("layers", []))
        if name not in signals or layer not in layers:
            continue
        cell = (signals.index(name), layers.index(layer))
        shape = (len(signals), len(layers))
        found = [
            (float(s), float(v[cell])) for s, n, v in run.layers if n == place and v.shape == shape
        ]
        found = [(s, v) for s, v in found if math.isfinite(v)]
        if found:
            x, y = zip(*found, strict=True)
            title = named_title(name)
            return Series(Text(f"{title.en}: {layer}", f"{title.zh}：{layer}"), x, y, "", RECORDED)
    return None


def _around(run: Run, name: str, layer: str, step: int) -> list[Evidence]:
    """The curve of the signal, or of the gradient norm and the loss, around the alert."""
    if layer and (series := _of_layer(run, name, layer)) is not None:
        return [replace(series, marks=(float(step),))]
    columns = (
        [name] if name in run.columns else [c for c in ("grad_norm", "loss") if c in run.columns]
    )
    found: list[Evidence] = []
    for column in columns:
        near = np.abs(run.scalars[:, 0] - step) <= _AROUND
        values = run.column(column)[near]
        if np.isfinite(values).any():
            found.append(Series(
                named_title(column), tuple(run.scalars[near, 0]), tuple(values), "", RECORDED,
                marks=(float(step),),
            ))  # fmt: skip
    return found


def _severity(alert: dict[str, Any]) -> Severity:
    try:
        return Severity(str(alert.get("severity")))
    except ValueError:
        return Severity.MEDIUM


def _number(value: object, default: Any = 0.0) -> Any:
    if isinstance(value, (int, float)) and math.isfinite(value):
        return value
    return default


def _gaps(run: Run) -> list[Gap]:
    gaps = []
    if run.torn_bytes:
        gaps.append(_gap("torn", Text(
            f"the last {run.torn_bytes} bytes were cut off, and are left out",
            f"末尾 {run.torn_bytes} 字节不完整，已略去",
        ), "–"))  # fmt: skip
    if not run.summary:
        gaps.append(_gap("open", Text(
            "the run has not ended, or was killed: figures are as of the last record",
            "运行尚未结束或被中止：数字截至最后一条记录",
        ), f"torchstone watch {run.path.parent} --follow"))  # fmt: skip
    thinner = [n for n in run.notes if n.get("kind") == "thinned"]
    if thinner and (note := thinner[-1]).get("en"):
        gaps.append(_gap("thinned", Text(
            f"from step {int(_number(note.get('step')))} on {note.get('en')}; curves have gaps between them",
            f"自第 {int(_number(note.get('step')))} 步起，{note.get('zh')}；曲线在其间有空缺",
        ), "Watch(budget=…)"))  # fmt: skip
    gaps += [
        _gap("unwatched", Text(str(n.get("en")), str(n.get("zh"))), "–")
        for n in run.notes
        if str(n.get("en", "")).startswith("not watched")
    ]
    return gaps


def _gap(name: str, text: Text, close: str) -> Gap:
    return Gap("run.tsw", Message(f"watch.{name}", text), close, tool="watch")


def _first(alerts: list[dict[str, Any]]) -> str | None:
    return ", ".join(f"{a['signal']}@{int(a['step'])}" for a in alerts[:4]) or None


def _indented(line: str, opens: bool, also: str = "also: ") -> str:
    return line if opens else also + line


_AGAIN = Text("every recorded value judged again, as it was when the run was live",
              "按运行时的方式对每个记录的数值重新判定")  # fmt: skip
_AGAIN_IN_PART = Text(
    "recorded values judged again; the older part of the journal was dropped to keep the file small",
    "对记录的数值重新判定；为限制文件大小，较早的判定日志已被丢弃",
)


def replay_report(run: Run, false_alarms: float) -> Report:
    """What other settings of the dial would have told, beside what was told."""
    steps = max(int(run.scalars[-1, 0]), 1) if len(run.scalars) else 1
    dials = sorted({0.5, 1.0, 2.0, 5.0, 20.0, false_alarms})
    outcomes = [replay(run, dial) for dial in dials]
    told = count_episodes(run)
    table = Table(
        Text("Learned signals under other dials", "其他阈值下学习型信号的结果"),
        (Text("false alarms in 10k steps", "每 1 万步误报"), Text("episodes", "告警事件"),
         Text("episodes in 10k steps", "每 1 万步事件"), Text("first alerts", "最早的告警")),
        ((Text("as it ran", "运行时"), told, told / steps * 1e4, _first([e[0] for e in run.episodes])), *((o.false_alarms_per_10k, o.episodes, o.episodes / steps * 1e4,
               ", ".join([f"{a.signal}@{a.step}" for a in o.alerts if a.opens][:4]) or None) for o in outcomes)),
        _AGAIN_IN_PART if run.journal_dropped else _AGAIN,
    )  # fmt: skip
    chosen = next(o for o in outcomes if o.false_alarms_per_10k == false_alarms)
    alerts = Table(
        Text(f"Alerts at {false_alarms:g}", f"阈值 {false_alarms:g} 下的告警"),
        (Text("step", "步"), Text("alert", "告警")),
        tuple((a.step, Text(_indented(a.body("en"), a.opens), _indented(a.body("zh"), a.opens, "另有："))) for a in chosen.alerts),
        Text("recorded values judged again", "对记录的数值重新判定"),
    )  # fmt: skip
    recorded = Table(
        Text("Alerts when it ran", "运行时的告警"),
        (Text("step", "步"), Text("alert", "告警")),
        tuple((int(e[0]["step"]), alert_text(e[0], e[1:])) for e in run.episodes),
        RECORDED,
    )
    return Report(
        tool="watch", subject=str(run.path.parent),
        measures=(measure(
            "replayed_episodes", float(chosen.episodes), "",
            Text(f"episodes at {false_alarms:g} false alarms in 10k steps",
                 f"每 1 万步 {false_alarms:g} 次误报下的告警事件"),
            (table, alerts, recorded), Text("recorded values judged again", "对记录的数值重新判定"),
        ),),
        environment={"torchstone": __version__},
    )  # fmt: skip
