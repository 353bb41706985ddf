"""The losses of micro-batches are averaged over the accumulation, not summed."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.listeners.state import WEIGHED_STEPS
from torchstone.conductor.probes.harvest.recording import Backward, OptimizerStep, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, called, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR103", "micro-batch-loss-not-averaged", Severity.HIGH, "wrong result",
    Text("the losses of micro-batches are summed instead of averaged",
         "各微批次的损失被求和而非求平均"),
    Text("the gradient grows with the number of micro-batches, as if the learning rate were multiplied",
         "梯度随微批次数目成倍增大，等同于学习率被放大"),
    Text("divide the loss by the number of micro-batches before backward()",
         "在 backward() 之前将损失除以微批次数"),
)  # fmt: skip
_LEAST_STEPS = 2
"""One step with several backward passes may be two losses of one batch."""

_CLOSE = 0.05
"""Of the sum of all weights: a weight is measured in float32, and a last group may be short."""


def check(run: Recording) -> Iterator[Shown]:
    groups = list(_groups(run))
    sizes = [len(group) for group in groups]
    if len(groups) < _LEAST_STEPS or min(sizes) < 2:
        return
    count = sorted(sizes)[len(sizes) // 2]
    places = {item.place for group in groups for item in group}
    weights = [item.weight for group in groups for item in group if item.step < WEIGHED_STEPS]
    if len(places) != 1 or any(map(math.isnan, weights)):
        return
    weight = max(weights)
    if weight * count < 1.5:  # averaged: the weights of one step sum to one
        return
    (place,) = places
    yield Shown(
        RULE, place,
        Text("{count} micro-batches enter one optimizer step, each with weight {weight}: the gradient is "
             "{times} times that of their mean",
             "{count} 个微批次进入一次优化器更新，各自权重为 {weight}：梯度是其平均值的 {times} 倍"),
        {"count": str(count), "weight": f"{weight:.3g}", "times": f"{weight * count:.3g}"},
        (number("micro-batches in a step", "每步微批次数", count, "", IN_THE_RUN),
         number("weight of each loss", "每个损失的权重", weight, "x", IN_THE_RUN),
         number("expected weight", "应有权重", 1 / count, "x", IN_THE_RUN)),
        offered(run.root, place, _divide),
    )  # fmt: skip


def holds(run: Recording) -> bool:
    """Several losses of one line enter each step, and their known weights sum to one."""
    groups = [group for group in _groups(run) if group[0].step < WEIGHED_STEPS]
    sums = [sum(item.weight for item in group) for group in groups]
    return (
        len(groups) > 0
        and min(map(len, groups)) >= 2
        and all(abs(total - 1) <= _CLOSE for total in sums)
    )


def _groups(run: Recording) -> Iterator[list[Backward]]:
    group: list[Backward] = []
    for event in run.events:
        if isinstance(event, Backward):
            group.append(event)
        elif isinstance(event, OptimizerStep):
            if group:
                yield group
            group = []


def _divide(file: SourceFile, place: Place) -> Iterator[Fix]:
    size = _accumulation(file, place)
    for call in file.calls(place.line, "backward"):
        if not size or not isinstance(call.func, ast.Attribute):
            continue
        target: ast.expr = call.func.value
        scaled = isinstance(target, ast.Call) and called(target) == "scale" and target.args
        loss = target.args[0] if isinstance(target, ast.Call) and scaled else target
        text = file.source(loss)
        text = text if isinstance(loss, ast.Name) else f"({text})"
        new = f"{text} / {size}" if scaled else f"({text} / {size})"
        yield fix([file.replace(loss, new)],
                  "divide the loss by the number of micro-batches", "将损失除以微批次数")  # fmt: skip


def _accumulation(file: SourceFile, place: Place) -> str:
    """What the step counter is divided by: `(step + 1) % N == 0`."""
    size = ""
    for node in ast.walk(file.function(place.line) or file.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return file.source(node.right)
    for node in ast.walk(file.function(place.line) or file.tree):
        if (
            isinstance(node, ast.For)
            and isinstance(node.iter, ast.Call)
            and called(node.iter) == "range"
        ):
            if node.lineno <= place.line <= (node.end_lineno or 0) and len(node.iter.args) == 1:
                size = file.source(node.iter.args[0])
    return size
