"""Memory of a run: the peak with its parts, over the step, and whether it fits on a device."""

from __future__ import annotations

from torchstone.core.evidence import Number
from torchstone.core.finding import Confidence, Finding
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Series, Table
from torchstone.core.quantity import human
from torchstone.core.text import Message, Text
from torchstone.dryrun import rules
from torchstone.dryrun.record import Memory, Record
from torchstone.dryrun.reporting.findings import TOOL, make_finding
from torchstone.runtime.devices import Device

_HOW = Text(
    "storages alive on the device, without the allocator's fragments and the libraries' workspace",
    "设备上存活的存储，不含分配器碎片与库的工作区",
)
_NAMES = {
    "parameters": Text("parameters", "参数"),
    "gradients": Text("gradients", "梯度"),
    "optimizer state": Text("optimizer state", "优化器状态"),
    "activations": Text("activations", "激活"),
}

_PHASES = {
    "forward": Text("in the forward pass", "前向传播中"),
    "backward": Text("in the backward pass", "反向传播中"),
    "optimizer": Text("in the optimizer step", "优化步中"),
    "other": Text("outside of modules", "模块之外"),
}
_OUTSIDE = _PHASES["other"]
_BEGINS = {
    "backward": Text("backward", "反向"),
    "optimizer": Text("optimizer step", "优化步"),
}
_MOST_MARKS = 8
"""Marks on the curve: those of the first steps; more would hide it."""


def memory_measures(records: tuple[Record, ...], device: Device | None) -> tuple[Measure, ...]:
    memory = largest(records)
    if memory is None:
        return ()
    fits = share_of(memory, device)
    how = Text(_HOW.en + fits.en, _HOW.zh + fits.zh)
    return (
        Measure("peak_memory_bytes", memory.peak_bytes, "B", how,
                Text("peak memory", "峰值显存"), evidence=memory_evidence(memory), tool=TOOL),
    )  # fmt: skip


def share_of(memory: Memory, device: Device | None) -> Text:
    """How much of the device's memory that is, as the end of a sentence."""
    if device is None:
        return Text("", "")
    share = 100 * memory.peak_bytes / device.memory_bytes
    return Text(f"; {share:.1f} % of {device.title}", f"；占 {device.title} 的 {share:.1f}%")


def largest(records: tuple[Record, ...]) -> Memory | None:
    known = [item.memory for item in records if item.memory is not None]
    return max(known, key=lambda item: item.peak_bytes, default=None)


def memory_evidence(memory: Memory) -> tuple[Evidence, ...]:
    phase = _PHASES.get(memory.peak_phase, _PHASES["other"])
    parts = Table(
        Text("what was alive at the peak", "峰值时存活的内容"),
        (Text("part", "部分"), Text("bytes", "字节")),
        tuple((_NAMES.get(part.name, part.name), part.bytes) for part in memory.at_peak),
        Text(f"{phase.en}, at {memory.peak_place}", f"{phase.zh}，位于 {memory.peak_place}"),
        ("", "B"),
    )  # fmt: skip
    found: list[Evidence] = [parts]
    if memory.modules:
        found.append(
            Table(
                Text("activations at the peak by kind of module", "峰值时各类模块的激活"),
                (Text("module", "模块"), Text("bytes", "字节")),
                tuple((part.name or _OUTSIDE, part.bytes) for part in memory.modules),
                units=("", "B"),
            )
        )
    if len(memory.curve) > 1:
        found.append(_over_the_run(memory))
    return tuple(found)


def _over_the_run(memory: Memory) -> Series:
    """Bytes alive at each allocation, with the places where a phase of a step begins."""
    xs = tuple(float(i) for i in range(len(memory.curve)))
    phases = memory.phases
    begins = [
        at for at, phase in enumerate(phases)
        if phase in _BEGINS and (not at or phases[at - 1] != phase)
    ]  # fmt: skip
    shown = begins if len(begins) <= _MOST_MARKS else begins[:_MOST_MARKS]
    return Series(
        Text("memory over the run", "显存随运行的变化"), xs,
        tuple(float(size) for size in memory.curve), "B", _HOW, "allocations",
        marks=tuple(float(at) for at in shown),
        mark_names=tuple(_BEGINS[phases[at]] for at in shown),
    )  # fmt: skip


def fit_findings(memory: Memory | None, device: Device | None) -> list[Finding]:
    """More than the device has."""
    if device is None or memory is None or memory.peak_bytes <= device.memory_bytes:
        return []
    peak, room = human(memory.peak_bytes, "B"), human(device.memory_bytes, "B")
    number = Number(Text("peak memory", "峰值显存"), memory.peak_bytes, "B", _HOW)
    return [
        make_finding(
            rules.MEMORY,
            Text("the step needs {peak}; {device} has {room}", "单步需要 {peak}；{device} 只有 {room}"),
            {"peak": peak, "device": device.title, "room": room},
            rules.MEMORY.why,
            Message(
                "fit",
                Text("a smaller batch, activation checkpointing, or sharding (--world-size plays it)",
                     "减小批大小、使用激活检查点或分片（可用 --world-size 模拟）"),
            ),
            memory.peak_place,
            (number, *memory_evidence(memory)),
            confidence=Confidence.LIKELY,
        )
    ]  # fmt: skip
