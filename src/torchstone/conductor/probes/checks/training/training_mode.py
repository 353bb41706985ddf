"""Training runs in training mode, also after an evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._scopes import training_calls
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.checks.training.evaluation_mode import depends_on_mode
from torchstone.conductor.probes.harvest.recording import ModeChange, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR105", "training-in-evaluation-mode", Severity.HIGH, "wrong result",
    Text("a model is trained in evaluation mode", "模型在评估模式下被训练"),
    Text("an evaluation switched it over and nobody switched it back: from then on dropout is off and "
         "batch norm stands still", "某次评估切换了模式而没有切换回来：此后 dropout 不再起作用，批归一化统计量停止更新"),
    Text("call train() before training goes on", "继续训练之前调用 train()"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    modules = {id(module): module for module in run.top_modules()}
    calls = list(training_calls(run))
    wrong = [call for call in calls if not call.training]
    switched = [event for event in run.of(ModeChange) if not event.training]
    if calls and switched:
        run.asks(RULE)
    if not wrong or not switched or not any(call.training for call in calls):
        return
    module = modules.get(wrong[0].module)
    if module is None or not depends_on_mode(module):
        return
    before = [event for event in switched if event.step <= wrong[0].step]
    place = (before or switched)[-1].place
    yield Shown(
        RULE, place,
        Text("eval() here is never undone: {bad} of {all} training calls run in evaluation mode",
             "此处的 eval() 从未恢复：{all} 次训练调用中有 {bad} 次处于评估模式"),
        {"bad": str(len(wrong)), "all": str(len(calls))},
        (number("training calls in evaluation mode", "评估模式下的训练调用", len(wrong), "", IN_THE_RUN),),
        offered(run.root, place, _switch_back),
    )  # fmt: skip


def _switch_back(file: SourceFile, place: Place) -> Iterator[Fix]:
    """train() before the end of the function that called eval()."""
    function = file.function(place.line)
    for call in file.calls(place.line, "eval", "train"):
        if function is None or not isinstance(call.func, ast.Attribute):
            continue
        name = file.source(call.func.value)
        says = ("switch back to training mode after the evaluation", "评估之后切换回训练模式")
        last = function.body[-1]
        if isinstance(last, ast.Return):
            yield fix([file.insert_before(last.lineno, f"{name}.train()")], *says)
        else:
            yield fix([file.insert_after(last, f"{name}.train()")], *says)
