"""The first screen of a cost: what was counted, its figures as tiles, memory by part, devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.pictures import Evidence, Limit, Part, Stack
from torchstone.core.quantity import human
from torchstone.core.text import Message, Text
from torchstone.cost.on_devices.fitting import Fit
from torchstone.cost.on_devices.need import LABELS
from torchstone.cost.on_devices.roofline_time import COMPUTE, LAUNCH, MEMORY, Duration
from torchstone.cost.records.idle import idle_parts
from torchstone.cost.records.ledger import BACKWARD, OPTIMIZER, Cost, Memory
from torchstone.cost.reporting.pictures import LIVES, NUMBER, flop_unit
from torchstone.cost.reporting.report import CostReport
from torchstone.runtime.devices import Device

_LARGEST = 3
"""Stages that are named on the first screen."""
_BOUNDS = {
    COMPUTE: Text("compute-bound", "受算力限制"),
    MEMORY: Text("memory-bound", "受内存带宽限制"),
    LAUNCH: Text("launch-bound", "受 kernel 启动限制"),
}
_SHORT = {10**12: ("T", 1e12), 10**9: ("B", 1e9), 10**6: ("M", 1e6)}


def peak_of(cost: Cost) -> int:
    """Of a step in the middle of a training: the optimizer's state is there from its start."""
    return cost.memory.later_peak if cost.train else cost.memory.peak


def cost_answer(report: CostReport) -> Answer:
    """What can be said without a device."""
    cost, total = report.cost, report.total
    idle = idle_parts(cost)
    unit = flop_unit(report)
    passes = Text("forward, backward and optimizer step", "前向、反向与优化器步骤") if cost.train else Text("forward pass", "一次前向")  # fmt: skip
    headline = Text(
        f"{report.subject}: {_count(total['params'])} parameters, {human(total['flops'], unit)}, "
        f"{human(peak_of(cost), 'B')} at peak",
        f"{report.subject}：{_count(total['params'])} 参数，{human(total['flops'], unit)}，"
        f"峰值内存 {human(peak_of(cost), 'B')}",
    )
    return Answer(
        headline=headline,
        state="warning" if idle or cost.failure else "plain",
        warnings=(idle_text(cost, idle),) if idle else (),
        about=(Fact(Text("counted", "统计"), passes),),
        tiles=(
            Tile(Text("parameters", "参数量"), _count(total["params"]), _trainable(report)),
            Tile(Text("FLOPs", "FLOPs"), human(total["flops"], unit), _flops_note(report)),
            Tile(
                Text("peak memory", "峰值内存"),
                human(peak_of(cost), "B"),
                Text("of one step", "单步") if cost.train else Text("of one pass", "单次前向"),
            ),
        ),
        pictures=(memory_stack(report, ()),),
        lines=_largest_stages(report),
        assumptions=tuple(_assumption_text(*item) for item in assumed(cost)),
    )


def with_devices(
    report: CostReport,
    about: Sequence[Fact],
    times: Sequence[tuple[Device, Duration]],
    fits: Sequence[Fit],
    cached: int = 0,
) -> Answer:
    """The same answer with what was asked of devices; `cached` is the KV cache in bytes."""
    answer = report.answer or cost_answer(report)
    tiles = [*answer.tiles]
    headline = answer.headline
    if fits and fits[0].measured_bytes is None:  # a plan: what one device holds is what matters
        size = human(fits[0].total_bytes, "B")
        tiles[2] = Tile(
            Text("memory", "内存"), size, Text("per device, the worst rank", "单卡，取最大的 rank")
        )
        alone = human(peak_of(report.cost), "B")
        headline = Text(
            headline.en.replace(f"{alone} at peak", f"{size} per device"),
            headline.zh.replace(f"峰值内存 {alone}", f"单卡峰值 {size}"),
        )
    elif cached:
        alone, size = (human(peak_of(report.cost) + more, "B") for more in (0, cached))
        tiles[2] = replace(
            tiles[2], value=size, note=Text("one pass and the KV cache", "单次前向与 KV 缓存")
        )
        headline = Text(
            headline.en.replace(f"{alone} at peak", f"{size} at peak"),
            headline.zh.replace(f"峰值内存 {alone}", f"峰值内存 {size}"),
        )
    for (device, duration), fit in zip(times, fits, strict=True):
        tiles.append(_time_tile(device, duration))
        tiles.append(_fit_tile(fit))
    wrong = [fit for fit in fits if not fit.fits]
    state = "bad" if wrong else answer.state if answer.state != "plain" else "good" if fits else "plain"  # fmt: skip
    verdicts = [_fit_words(fit) for fit in fits]
    headline = Text(
        ". ".join([headline.en, *(item.en for item in verdicts)]),
        "。".join([headline.zh, *(item.zh for item in verdicts)]),
    )
    stack: tuple[Evidence, ...] = (memory_stack(report, fits, cached),)
    return replace(
        answer, headline=headline, state=state, about=(*about, *answer.about),
        tiles=tuple(tiles), pictures=stack,
    )  # fmt: skip


def with_sweep(
    answer: Answer, too_far: Sequence[tuple[Device, tuple[int, int | None, CostReport]]]
) -> Answer:
    """The same answer with the points of the sweep that no longer fit."""
    by_device: dict[str, list[str]] = {}
    for device, (batch, length, report) in too_far:
        size = human(peak_of(report.cost), "B")
        at = f"batch {batch}" + (f", sequence {length}" if length else "")
        by_device.setdefault(device.title, []).append(f"{at} ({size})")
    lines = tuple(
        Text(f"sweep: does not fit on {title} at {'; '.join(points)}",
             f"扫描：以下情形放不进 {title}：{'；'.join(points)}")
        for title, points in by_device.items()
    )  # fmt: skip
    state = "warning" if lines and answer.state == "good" else answer.state
    return replace(answer, lines=(*lines, *answer.lines), state=state)


def _time_tile(device: Device, duration: Duration) -> Tile:
    bound = _BOUNDS.get(duration.bound, Text("", ""))
    note = Text(
        f"roofline estimate without kernel fusion, {bound.en}", f"roofline 估算（不考虑算子融合），{bound.zh}"
    )  # fmt: skip
    return Tile(
        Text(f"time on {device.title}", f"{device.title} 上的时间"),
        human(duration.seconds, "s"),
        note,
    )


def _fit_tile(fit: Fit) -> Tile:
    left = human(abs(fit.headroom_bytes), "B")
    return Tile(
        Text(f"on {fit.device.title}", f"{fit.device.title}"),
        Text("fits", "放得下") if fit.fits else Text("does not fit", "放不下"),
        Text(f"{left} left", f"剩余 {left}")
        if fit.fits
        else Text(f"{left} missing", f"还差 {left}"),
        "good" if fit.fits else "bad",
    )


def _fit_words(fit: Fit) -> Text:
    left = human(abs(fit.headroom_bytes), "B")
    name = fit.device.title
    if fit.fits:
        return Text(f"Fits on {name} with {left} left", f"可放入 {name}，剩余 {left}")
    return Text(f"Does not fit on {name}: {left} missing", f"放不进 {name}：还差 {left}")


def memory_stack(report: CostReport, fits: Sequence[Fit], cached: int = 0) -> Stack:
    """Peak memory by what it is for; the rest of the peak is what is alive only for a moment.

    Under a plan it is that of the fullest device, whose parts add up to an upper bound.
    """
    limits = tuple(Limit(fit.device.title, float(fit.usable_bytes)) for fit in fits)
    if fits and fits[0].measured_bytes is None:
        need = fits[0].need
        working = ("gathered", "activations", "recomputed")
        # activations are gone when the optimizer steps: only the larger of the two counts
        busy = sum(getattr(need, name) for name in working) >= need.temporaries
        gone = ("temporaries",) if busy else working
        known = [(label, getattr(need, name)) for name, label in LABELS.items() if name not in gone]
        title = Text(
            "Peak memory per device (worst rank), by part", "单卡内存峰值的构成（最大的 rank）"
        )
        how = Text("an upper bound under the plan", "该并行方案下的上界")
        held = tuple(Part(label, float(size)) for label, size in known if size)
        return Stack(title, held, "B", how, limits)
    title = Text("Memory at the peak, by part", "峰值时刻的内存构成")
    parts = [*_parts_at_peak(report.cost.memory)]
    if cached:
        parts.append(Part(LABELS["cache"], float(cached)))
    return Stack(title, tuple(parts), "B", LIVES, limits)


_WORKING = {
    OPTIMIZER: Text("optimizer temporaries", "优化器的临时张量"),
    BACKWARD: Text("activations and temporaries", "激活与临时张量"),
}


def _parts_at_peak(memory: Memory) -> Iterator[Part]:
    """What is alive at the moment of the peak of a later step: activations are gone when the optimizer
    steps."""

    def size_of(name: str) -> int:
        return memory.peaks[name] + (0 if name == OPTIMIZER else memory.optimizer)

    phase = max(memory.peaks, key=size_of, default="")
    instant = max(
        (one for one in memory.timeline if one[1] == phase), key=lambda one: one[2], default=None
    )
    working = instant[3] if instant is not None else memory.activations
    label = _WORKING.get(phase, Text("activations", "激活"))
    rest = memory.later_peak
    for name, size in (
        (Text("parameters", "参数"), memory.parameters),
        (Text("optimizer state", "优化器状态"), memory.optimizer),
        (Text("buffers and inputs", "缓冲区与输入"), memory.buffers + memory.inputs),
        (label, working),
        (Text("gradients", "梯度"), memory.gradients),
        (Text("temporary", "临时"), memory.later_peak),
    ):
        shown = min(size, rest)
        if shown:
            yield Part(name, float(shown))
        rest -= shown


def _largest_stages(report: CostReport) -> tuple[Text, ...]:
    whole = report.total["flops"] or 1
    ranked = sorted(report.stages.items(), key=lambda item: -item[1]["flops"])
    shown = [(name, item) for name, item in ranked if item["flops"]][:_LARGEST]
    if len(shown) < 2:
        return ()
    unit = flop_unit(report)

    def said(colon: str, comma: str) -> str:
        return comma.join(
            f"{name}{colon}{human(item['flops'], unit)} ({item['flops'] / whole:.0%})"
            for name, item in shown
        )

    return (Text(f"largest stages: {said(' ', ', ')}", f"最大的阶段：{said(' ', '，')}"),)


def idle_text(cost: Cost, idle: Mapping[str, int]) -> Text:
    """Which parts never ran, and what share of the parameters they hold."""
    share = sum(idle.values()) / max(cost.parameters(), 1)
    names = ", ".join(
        f"{path or '(model)'} ({_count(count)})" for path, count in list(idle.items())[:4]
    )
    more = f", … {len(idle) - 4} more" if len(idle) > 4 else ""
    return Text(
        f"Partial: {share:.1%} of the parameters belong to modules that never ran, so their cost is "
        f"not counted: {names}{more}. Pass inputs that reach them (--input)",
        f"结果不完整：{share:.1%} 的参数属于从未运行的模块，其代价未计入：{names}{more}。"
        "请传入能到达这些模块的输入（--input）",
    )


def assumed(cost: Cost) -> list[tuple[Message, str, int]]:
    """Assumptions, those of equal layers taken together."""
    found: dict[tuple[str, str], tuple[Message, str, int]] = {}
    for item in cost.assumptions:
        where = NUMBER.sub("*", item.where)
        key = (item.text.say("en"), where)
        times = found[key][2] if key in found else 0
        found[key] = (item.text, where, times + item.times)
    return list(found.values())


def _assumption_text(text: Message, where: str, times: int) -> Text:
    place = where or "(model)"
    return Text(
        f"{text.say('en')} ({place}, {times} x)", f"{text.say('zh')}（{place}，{times} 次）"
    )


def _trainable(report: CostReport) -> Text:
    trainable, whole = report.total["trainable_params"], report.total["params"]
    if trainable == whole:
        return Text("shared weights counted once", "共享权重只计一次")
    return Text(f"{_count(trainable)} trainable", f"其中可训练 {_count(trainable)}")


def _flops_note(report: CostReport) -> Text:
    if not report.cost.train:
        return Text("2 x multiply-adds of matmuls", "矩阵乘法的 2 x 乘加")
    unit = flop_unit(report)
    forward, backward = (
        human(report.total[f"{name}_flops"], unit) for name in ("forward", "backward")
    )
    return Text(f"forward {forward}, backward {backward}", f"前向 {forward}，反向 {backward}")


def _count(value: int) -> str:
    """1,234,567,890 as 1.235 B."""
    for least, (letter, size) in _SHORT.items():
        if value >= least:
            return f"{value / size:.4g} {letter}"
    return f"{value:,}"
