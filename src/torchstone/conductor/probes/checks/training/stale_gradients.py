"""A step uses the gradients of its own batches, not those of an earlier step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import OptimizerStep, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, called, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR102", "stale-gradients", Severity.HIGH, "wrong result",
    Text("a step uses gradients that an earlier step has used already", "一次更新用到了先前更新已用过的梯度"),
    Text("nobody cleared the gradients after the step, so that every later step adds to them",
         "更新之后没有清除梯度，此后每一步都在其上累加"),
    Text("call zero_grad() after each step", "每次更新之后调用 zero_grad()"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    steps = list(run.of(OptimizerStep))
    if len(steps) > 1:
        run.asks(RULE)
    stale = [step for step in steps if step.stale]
    if stale:
        place = stale[0].place
        yield Shown(
            RULE, place,
            Text("{bad} of {all} optimizer steps use gradients that an earlier step has used",
                 "{all} 次优化器更新中有 {bad} 次用到了先前更新已用过的梯度"),
            {"bad": str(len(stale)), "all": str(len(steps))},
            (number("steps with old gradients", "使用旧梯度的更新", len(stale), "", IN_THE_RUN),),
            offered(run.root, place, _clear),
        )  # fmt: skip


def _clear(file: SourceFile, place: Place) -> Iterator[Fix]:
    statement = file.statement(place.line)
    for call in file.calls(place.line, "step"):
        if statement is not None and isinstance(call.func, ast.Attribute):
            name = file.source(call.args[0]) if call.args else file.source(call.func.value)
            if called(call) == "step":
                yield fix([file.insert_after(statement, f"{name}.zero_grad(set_to_none=True)")],
                          "clear the gradients after the step", "更新之后清除梯度")  # fmt: skip
