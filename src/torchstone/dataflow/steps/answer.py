"""The first screen of measured steps: the three parts, the largest first, and what causes it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from torchstone.core.answer import Answer, Tile
from torchstone.core.measure import Measure
from torchstone.core.pictures import Part, Stack, Table
from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.dataflow.steps.measuring import Measured
from torchstone.dataflow.steps.spans import length
from torchstone.dataflow.tracing.sampling import Spot

TOOL = "flow"
_ROWS = 12
_PARTS = {
    "data": Text("waiting for data", "等待数据"),
    "host": Text("Python and launching (host)", "Python 与算子下发（host）"),
    "device": Text("computing (device)", "计算（device）"),
}
_ADVICE = {
    "own": Text(
        "the DataLoader has no workers: num_workers=4 would load batches while the model computes",
        "DataLoader 没有工作进程：设置 num_workers=4 可在模型计算的同时加载数据",
    ),
    "workers": Text(
        "the workers are too slow: start more of them, or do less work for each sample",
        "工作进程跟不上：请增加其数量，或减少每个样本的工作量",
    ),
    "host": Text(
        "the device waits for Python: fewer and larger operators (torch.compile), no `.item()`, logging or printing in every step",
        "设备在等待 Python：减少零碎算子（torch.compile），不要每步都 `.item()`、记录日志或打印",
    ),
    "device": Text(
        "the model itself is the limit: mixed precision, torch.compile or a faster device",
        "瓶颈在模型本身：可用混合精度、torch.compile 或更快的设备",
    ),
}
_HOW = Text("torch's profiler, wall clock", "torch profiler，墙钟时间")


def part_seconds(measured: Measured) -> dict[str, float]:
    """Seconds of each part, the largest first; no `data` without a DataLoader."""
    names = [name for name in _PARTS if name != "data" or measured.loader]
    found = {name: length(getattr(measured.division, name)) * 1e-6 for name in names}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def steps_answer(subject: str, measured: Measured) -> Answer:
    """Of a script whose steps were measured."""
    parts = part_seconds(measured)
    whole = sum(parts.values()) or 1.0
    step = human(whole / measured.steps, "s")
    said = [
        joint.join(f"{_PARTS[name].get(lang)} {parts[name] / whole:.0%}" for name in parts)
        for lang, joint in (("en", ", "), ("zh", "，"))
    ]
    cause = cause_of(measured, next(iter(parts)))
    return Answer(
        headline=Text(
            f"{subject}: a step takes {step}: {said[0]}{cause.en}",
            f"{subject}：一步用时 {step}：{said[1]}{cause.zh}",
        ),
        state="plain",
        tiles=(
            Tile(
                Text("time of a step", "单步用时"),
                step,
                Text(f"mean of {measured.steps} steps", f"{measured.steps} 步的平均"),
            ),
            *(
                Tile(_PARTS[name], f"{seconds / whole:.0%}", human(seconds / measured.steps, "s"))
                for name, seconds in parts.items()
            ),
        ),
        pictures=(
            Stack(
                Text("Where a step goes", "一步的时间去向"),
                tuple(Part(_PARTS[name], parts[name] / measured.steps) for name in parts),
                "s",
                _HOW,
            ),
        ),
        lines=tuple(_lines(measured, parts, whole)),
        next=_next(subject, next(iter(parts))),
    )


def steps_measures(measured: Measured) -> tuple[Measure, ...]:
    """Seconds of a step by part, with the lines and the operators behind them."""
    lines = Table(
        Text("Lines by how often they were seen", "各行被采样到的次数"),
        (
            Text("part", "部分"),
            Text("line", "位置"),
            Text("function", "函数"),
            Text("seen", "次数"),
        ),
        tuple(
            (_PARTS[part], place_of(spot), spot.function, count)
            for part, spots in measured.spots.items()
            for spot, count in spots.most_common(_ROWS)
            if spot.file
        ),
        Text("one look every 5 ms", "每 5 毫秒采样一次"),
    )
    operators = Table(
        Text("Operators by their own time", "各算子自身用时"),
        (Text("operator", "算子"), Text("time", "时间")),
        tuple((name, spent * 1e-6) for name, spent in measured.operators[:_ROWS]),
        _HOW,
        ("", "s"),
    )
    found = [
        Measure(f"{name}_seconds", seconds / measured.steps, "s", _HOW, _PARTS[name], tool=TOOL)
        for name, seconds in part_seconds(measured).items()
    ]
    whole = sum(part_seconds(measured).values()) / measured.steps
    title = Text("time of a step", "单步用时")
    evidence = (lines, operators)
    return (Measure("step_seconds", whole, "s", _HOW, title, evidence=evidence, tool=TOOL), *found)


def cause_of(measured: Measured, part: str) -> Text:
    """The line, or the operator, that the largest part is spent on; empty where none was seen."""
    if part == "device" and measured.operators:
        name = measured.operators[0][0]
        return Text(f"; most in {name}", f"；主要是 {name}")
    spot = _main_spot(measured, part)
    if spot is None:
        return Text("", "")
    if spot.doing == "wait" and measured.loader == "workers":
        return Text("; the DataLoader's workers are too slow", "；DataLoader 的工作进程跟不上")
    return Text(
        f"; most in {spot.function} at {place_of(spot)}",
        f"；主要在 {spot.function}（{place_of(spot)}）",
    )


def place_of(spot: Spot) -> str:
    return f"{os.path.basename(spot.file)}:{spot.line}"


def _main_spot(measured: Measured, part: str) -> Spot | None:
    """The most frequent line of the most frequent function."""
    functions: dict[str, int] = {}
    for spot, count in measured.spots[part].items():
        if spot.file:
            functions[spot.function] = functions.get(spot.function, 0) + count
    if not functions:
        return None
    name = max(functions, key=lambda one: functions[one])
    return next(
        spot
        for spot, _ in measured.spots[part].most_common()
        if spot.function == name and spot.file
    )


def _lines(measured: Measured, parts: dict[str, float], whole: float) -> Iterator[Text]:
    """Each part with its cause; the largest also with what to do about it."""
    for place, (name, seconds) in enumerate(parts.items()):
        cause = cause_of(measured, name)
        share = f"{human(seconds / measured.steps, 's')} ({seconds / whole:.0%})"
        todo = _ADVICE[measured.loader if name == "data" else name]
        advice = Text("", "") if place else Text(f". {_sentence(todo.en)}", f"。{todo.zh}")
        yield Text(
            f"{_PARTS[name].en}: {share}{cause.en}{advice.en}",
            f"{_PARTS[name].zh}：{share}{cause.zh}{advice.zh}",
        )
    if not measured.loader:
        yield Text(
            "no DataLoader was used: loading data is part of the other two",
            "没有使用 DataLoader：加载数据的时间计入其余两项",
        )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _next(subject: str, part: str) -> tuple[str, ...]:
    if not subject.endswith(".py"):
        return ()
    return (f"torchstone {'flow trace' if part == 'data' else 'check'} {subject}",)
