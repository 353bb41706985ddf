"""The schedule moves once for each optimizer step, and after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import (
    OptimizerStep,
    Recording,
    Scaling,
    SchedulerStep,
)
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, called, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR110", "scheduler-order", Severity.MEDIUM, "wrong result",
    Text("the learning-rate schedule does not follow the optimizer steps", "学习率调度与优化器更新不一致"),
    Text("the learning rates are not those of the schedule: its first value is skipped, or it runs out early",
         "实际学习率与调度不符：首个值被跳过，或过早耗尽"),
    Text("call the scheduler after the optimizer, once for each of its steps",
         "在优化器之后调用调度器，每次更新只调用一次"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    stepped = False
    since = 0
    for event in run.events:
        if isinstance(event, OptimizerStep) or (
            isinstance(event, Scaling) and event.method == "step"
        ):
            stepped, since = True, 0
        elif isinstance(event, SchedulerStep):
            since += 1
            run.asks(RULE)
            if not stepped and any(True for _ in run.of(OptimizerStep)):
                yield _shown(run, event, Text("the schedule moves before the first optimizer step",
                                              "调度器在第一次优化器更新之前就已前进"))  # fmt: skip
                return
            if since == 2 and run.steps > 2:
                yield _shown(run, event, Text("the schedule moves several times for one optimizer step",
                                              "每次优化器更新对应多次调度前进"))  # fmt: skip
                return


def _shown(run: Recording, event: SchedulerStep, what: Text) -> Shown:
    moves = sum(1 for _ in run.of(SchedulerStep))
    return Shown(
        RULE, event.place, what, {},
        (number("moves of the schedule", "调度前进次数", moves, "", IN_THE_RUN),
         number("optimizer steps", "优化器更新次数", run.steps, "", IN_THE_RUN)),
        offered(run.root, event.place, _after_step),
    )  # fmt: skip


def _after_step(file: SourceFile, place: Place) -> Iterator[Fix]:
    statement = file.statement(place.line)
    moved = file.source(statement) if statement else ""
    for node in ast.walk(file.function(place.line) or file.tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and called(node.value) == "step"
        ):
            if statement is None or node is statement or file.source(node) == moved:
                continue
            yield fix([file.delete(statement), file.insert_after(node, moved)],
                      "move the schedule after the optimizer's step", "将调度器移到优化器更新之后")  # fmt: skip
            return
