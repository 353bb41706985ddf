"""Evaluation runs in evaluation mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch import nn

from torchstone.conductor.probes.checks._scopes import evaluation_calls, own_place
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.observe.compat.layers import BatchNormBase, DropoutBase

RULE = ProbeRule(
    "PR104", "evaluation-in-training-mode", Severity.HIGH, "wrong result",
    Text("a model is evaluated in training mode", "模型在训练模式下被评估"),
    Text("dropout drops values and batch norm uses the statistics of the batch, so that the figures are "
         "not those of the model", "dropout 会丢弃数值，批归一化使用当前批统计量，得到的指标并非模型的真实水平"),
    Text("call eval() before the evaluation and train() after it", "评估前调用 eval()，评估后调用 train()"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    modules = {id(module): module for module in run.top_modules()}
    for call in evaluation_calls(run):
        module = modules.get(call.module)
        if module is None or not depends_on_mode(module):
            continue
        run.asks(RULE)
        if not call.training:
            continue
        place = own_place(run, call)
        yield Shown(
            RULE, place,
            Text("{name} is called for evaluation while it is in training mode: its dropout and norms "
                 "act as in training", "{name} 在训练模式下被用于评估：dropout 与归一化按训练方式工作"),
            {"name": type(module).__name__},
            (number("layers that depend on the mode", "依赖模式的层", mode_layers(module), "", IN_THE_RUN),),
            offered(run.root, place, _switch),
        )  # fmt: skip
        return


def mode_layers(module: nn.Module) -> int:
    """Layers that act differently in training."""
    kinds = (DropoutBase, BatchNormBase)
    return sum(isinstance(item, kinds) and getattr(item, "p", 1.0) > 0 for item in module.modules())


def depends_on_mode(module: nn.Module) -> bool:
    return mode_layers(module) > 0


def _switch(file: SourceFile, place: Place) -> Iterator[Fix]:
    function = file.function(place.line)
    used = [node.id for node in file.nodes(place.line, ast.Name) if isinstance(node, ast.Name)]
    names = [name for name in used if name in _arguments(function) and "model" in name.lower()]
    names += [name for name in used if name in _arguments(function)]
    if function is None or not names:
        return
    body = [item for item in function.body
            if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]  # fmt: skip
    name, first, last = names[0], body[0], body[-1]
    start = file.insert_before(first.lineno, f"{name}.eval()")
    says = ("evaluate in evaluation mode", "在评估模式下评估")
    yield fix([start], *says)
    if isinstance(last, ast.Return):
        yield fix([start, file.insert_before(last.lineno, f"{name}.train()")], *says)


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> set[str]:
    return {item.arg for item in function.args.args} if function else set()
