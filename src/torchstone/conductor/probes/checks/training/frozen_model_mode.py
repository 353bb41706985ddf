"""A model that teaches another one, and is not trained itself, runs in evaluation mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._scopes import teaching_calls
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.checks.training.evaluation_mode import depends_on_mode, mode_layers
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR109",
    "frozen-model-in-training-mode",
    Severity.MEDIUM,
    "wrong result",
    Text(
        "a model that is not trained runs in training mode while it teaches another one",
        "不参与训练的模型在指导另一模型时处于训练模式",
    ),
    Text(
        "its dropout makes the targets noisy, and its batch norm statistics move with every batch although its weights "
        "stand still",
        "其 dropout 使目标带有噪声，且权重不变时批归一化统计量仍随每个批次变化",
    ),
    Text("call eval() on it before it is used", "使用之前对其调用 eval()"),
)
_FEWEST = 2
"""Optimizer steps between two calls in which weights that are averaged would move."""


def check(run: Recording) -> Iterator[Shown]:
    modules = {id(module): module for module in run.top_modules()}
    calls = [call for call in teaching_calls(run) if call.module in modules]
    if calls:
        run.asks(RULE)
    for module in dict.fromkeys(call.module for call in calls):
        own = [call for call in calls if call.module == module]
        stands_still = len({call.weights for call in own}) == 1
        long = own[-1].step - own[0].step >= _FEWEST
        noisy = [call for call in own if call.training]
        if not (stands_still and long and noisy and depends_on_mode(modules[module])):
            continue
        place = noisy[0].place
        layers = mode_layers(modules[module])
        yield Shown(
            RULE,
            place,
            Text(
                "{name} teaches in training mode: its weights stand still over {count} calls, its dropout and norms do not",
                "{name} 在训练模式下提供目标：{count} 次调用中权重不变，但 dropout 与归一化仍按训练方式工作",
            ),
            {"name": type(modules[module]).__name__, "count": str(len(own))},
            (number("layers that depend on the mode", "依赖模式的层", layers, "", IN_THE_RUN),),
            offered(run.root, place, _switch),
        )


def _switch(file: SourceFile, place: Place) -> Iterator[Fix]:
    """`model.train()` of the function becomes eval(); else eval() comes right before the call."""
    function = file.function(place.line)
    scope = function or file.tree
    says = ("let it teach in evaluation mode", "在评估模式下提供目标")
    called_names = [
        file.source(node.func)
        for node in file.nodes(place.line, ast.Call)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    ]
    for name in called_names:
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and file.source(node) == f"{name}.train()":
                yield fix([file.replace(node, f"{name}.eval()")], *says)
    statement = file.statement(place.line)
    for name in called_names:
        if statement is not None:
            yield fix([file.insert_before(statement.lineno, f"{name}.eval()")], *says)
