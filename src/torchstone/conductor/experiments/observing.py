"""What a run of a program did, as data for whoever looks for a fault: losses, rates, calls."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.recording.session import Start, record
from torchstone.conductor.probes.processes import answers_of
from torchstone.core.codec import from_data, to_data
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text

TOOL = "experiments"
_MOST_STEPS = 200
_MOST_CALLS = 60
_HOW = Text("recorded while the program ran", "程序运行时记录")


@dataclass(frozen=True, slots=True)
class Step:
    """One backward pass with the rate of the next optimizer step."""

    step: int
    loss: float
    rate: float


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the project and what it was given."""

    name: str
    path: str
    line: int
    arguments: str


@dataclass(frozen=True, slots=True)
class Observed:
    """A run, small enough to be read."""

    steps: tuple[Step, ...] = ()
    calls: tuple[Called, ...] = ()
    optimizer_steps: int = 0
    ended: str = ""
    failed_at: str = ""


def observe(start: Start) -> Report:
    """Run the program under the recorders and say what it did."""
    ((text, late),) = answers_of([functools.partial(_written, start)])
    command = " ".join(("python", start.script, *start.arguments))
    if text is None:
        why = (
            Text("it took too long", "超时") if late else Text("its process ended", "进程异常结束")
        )
        gap = Gap(start.script, Message("experiments.child", why), command, failed=True, tool=TOOL)
        return Report(TOOL, gaps=(gap,), subject=command)
    seen = from_data(Observed, json.loads(text), "observed")
    gaps: tuple[Gap, ...] = ()
    if seen.ended not in ("", "time"):
        said = Text(
            f"the program ended early: {seen.ended} ({seen.failed_at})",
            f"程序提前结束：{seen.ended}（{seen.failed_at}）",
        )
        gaps = (Gap(start.script, Message("experiments.ended", said), command, tool=TOOL),)
    return Report(TOOL, (), (_losses(seen), _calls(seen)), gaps, subject=command)


def _losses(seen: Observed) -> Measure:
    columns = (Text("step", "步"), Text("loss", "损失"), Text("rate", "学习率"))
    rows = tuple((item.step, item.loss, item.rate) for item in seen.steps)
    table = Table(Text("Losses", "损失"), columns, rows)
    label = Text("optimizer steps", "优化步数")
    return Measure("steps", seen.optimizer_steps, "", _HOW, label, evidence=(table,), tool=TOOL)


def _calls(seen: Observed) -> Measure:
    columns = (Text("function", "函数"), Text("place", "位置"), Text("arguments", "参数"))
    rows = tuple((item.name, f"{item.path}:{item.line}", item.arguments) for item in seen.calls)
    table = Table(Text("Calls", "调用"), columns, rows)
    label = Text("functions called", "被调用的函数")
    return Measure("calls", len(seen.calls), "", _HOW, label, evidence=(table,), tool=TOOL)


def _written(start: Start) -> str:
    run, _ = record(start)
    rates = [max(item.rates, default=math.nan) for item in run.steps]
    steps = tuple(
        Step(item.step, item.value, rates[item.step] if item.step < len(rates) else math.nan)
        for item in run.losses[:_MOST_STEPS]
    )
    first = [item for item in run.calls if item.number == 0]
    calls = tuple(map(_called, first[:_MOST_CALLS]))
    return json.dumps(
        to_data(Observed(steps, calls, len(run.steps), run.ended, str(run.failed_at)))
    )


def _called(call: Call) -> Called:
    given = ", ".join(f"{name}={_short(value)}" for name, value in call.arguments.items())
    return Called(call.name, call.place.path, call.place.line, given[:300])


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        grad = ", grad" if value.requires_grad else ""
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{grad}"
    if isinstance(value, nn.Module):
        return f"{type(value).__name__}({'training' if value.training else 'eval'})"
    if isinstance(value, int | float | bool | str | None):
        return repr(value)[:40]
    return type(value).__name__
