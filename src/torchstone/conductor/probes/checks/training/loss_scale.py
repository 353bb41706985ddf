"""Where a GradScaler is used, steps go through it, and it is updated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import OptimizerStep, Recording, Scaling
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR111", "loss-scale-mishandled", Severity.HIGH, "wrong result",
    Text("the loss scale is not taken out of the gradients, or never updated", "损失缩放没有从梯度中去除，或从未更新"),
    Text("scaled gradients make the step too large by the scale; a scale that is never updated stays after an overflow",
         "带缩放的梯度使更新放大相应倍数；从不更新的缩放在溢出之后也不会降低"),
    Text("step with scaler.step(optimizer), then scaler.update()", "使用 scaler.step(optimizer)，然后 scaler.update()"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    for step in run.of(OptimizerStep):
        if step.scale > 1.0:
            yield Shown(
                RULE, step.place,
                Text("the optimizer steps with gradients that carry the loss scale {scale}",
                     "优化器使用仍带损失缩放 {scale} 的梯度更新"),
                {"scale": f"{step.scale:g}"},
                (number("loss scale", "损失缩放", step.scale, "x", IN_THE_RUN),),
            )  # fmt: skip
            return
    calls = [event for event in run.of(Scaling) if event.enabled]
    steps = [event for event in calls if event.method == "step"]
    if steps:
        run.asks(RULE)
    if len(steps) > 1 and not any(event.method == "update" for event in calls):
        place = steps[0].place
        yield Shown(
            RULE, place, Text("the loss scale is never updated", "损失缩放从未更新"), {},
            (number("steps without an update", "未更新的次数", len(steps), "", IN_THE_RUN),),
            offered(run.root, place, _update),
        )  # fmt: skip


def _update(file: SourceFile, place: Place) -> Iterator[Fix]:
    statement = file.statement(place.line)
    for call in file.calls(place.line, "step"):
        if statement is not None and isinstance(call.func, ast.Attribute):
            yield fix([file.insert_after(statement, f"{file.source(call.func.value)}.update()")],
                      "update the loss scale after the step", "更新之后更新损失缩放")  # fmt: skip
