"""What a run of a program did, as data for whoever looks for a fault: losses, rates, calls."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.recording.session import Start, record
from torchstone.conductor.probes.processes import answers_of, used_by_children
from torchstone.core.codec import from_data, to_data
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.place import Place
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dryrun.reporting.supplied import supply_measures
from torchstone.starting.loop import Attempt, run_with_repairs
from torchstone.starting.obstacles import Obstacle
from torchstone.starting.supplies import Supply

TOOL = "experiments"
_MOST_STEPS = 200
_MOST_CALLS = 60
_HOW = Text("recorded while the program ran", "程序运行时记录")
NO_STEP = Text("the program made no optimizer step", "程序没有执行任何优化步")


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
    last_lines: str = ""
    obstacle: Obstacle | None = None
    stack: tuple[Place, ...] = ()


def observe(start: Start) -> Report:
    """Run the program under the recorders and say what it did. What it lacks here is supplied."""
    command = " ".join(("python", start.script, *start.arguments))

    def attempt(supplies: tuple[Supply, ...]) -> Attempt[tuple[Observed | None, bool]]:
        before = used_by_children()
        work = functools.partial(_written, replace(start, supplies=supplies))
        ((text, late),) = answers_of([work])
        if text is None:
            return Attempt((None, late), None)
        seen = from_data(Observed, json.loads(text), "observed")
        return Attempt((seen, late), seen.obstacle, seen.stack, used_by_children() - before)

    started = run_with_repairs(attempt, start.root, start.root / start.script)
    seen, late = started.outcome
    if seen is None:
        why = (
            Text("it took too long", "超时") if late else Text("its process ended", "进程异常结束")
        )
        gap = Gap(start.script, Message("experiments.child", why), command, failed=True, tool=TOOL)
        return Report(TOOL, gaps=(gap,), subject=command)
    gaps = tuple(
        Gap(start.script, Message("experiments.ended", said), command, tool=TOOL)
        for said in _shortcomings(seen)
    )
    measures = (_losses(seen), _calls(seen), *supply_measures(started.supplies))
    return Report(TOOL, (), measures, gaps, subject=command)


def _shortcomings(seen: Observed) -> Iterator[Text]:
    printed = f"; it printed last: {seen.last_lines}" if seen.last_lines else ""
    printed_zh = f"；最后输出：{seen.last_lines}" if seen.last_lines else ""
    if seen.ended not in ("", "time"):
        place = f" ({seen.failed_at})" if seen.failed_at else ""
        yield Text(
            f"the program ended early: {seen.ended}{place}{printed}",
            f"程序提前结束：{seen.ended}{place}{printed_zh}",
        )
    elif not seen.optimizer_steps:
        yield Text(f"{NO_STEP.en}{printed}", f"{NO_STEP.zh}{printed_zh}")


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
        to_data(
            Observed(
                steps,
                calls,
                len(run.steps),
                run.ended,
                str(run.failed_at or ""),
                run.last_lines,
                run.obstacle,
                run.stack,
            )
        )
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
