"""Evaluation records no graph."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.conductor.probes.checks._scopes import evaluation_calls, own_place
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR106", "evaluation-records-graph", Severity.MEDIUM, "slow",
    Text("an evaluation records a graph for a backward pass that never comes",
         "评估过程记录了永远不会用到的反向计算图"),
    Text("activations are kept, so that evaluation needs the memory of training",
         "激活值被保留，评估占用与训练同样的显存"),
    Text("decorate the evaluation with @torch.no_grad()", "为评估函数加上 @torch.no_grad()"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    calls = list(evaluation_calls(run))
    if calls:
        run.asks(RULE)
    wrong = [call for call in calls if call.grad and not call.training]
    if wrong:
        place = own_place(run, wrong[0])
        yield Shown(
            RULE, place,
            Text("{bad} of {all} evaluation calls record a graph", "{all} 次评估调用中有 {bad} 次记录了计算图"),
            {"bad": str(len(wrong)), "all": str(len(calls))},
            (number("calls with a graph", "记录计算图的调用", len(wrong), "", IN_THE_RUN),),
            offered(run.root, place, _no_grad),
        )  # fmt: skip


def _no_grad(file: SourceFile, place: Place) -> Iterator[Fix]:
    function = file.function(place.line)
    if function is not None:
        first = min([function.lineno, *(item.lineno for item in function.decorator_list)])
        yield fix([file.insert_before(first, "@torch.no_grad()")],
                  "evaluate without a graph", "评估时不记录计算图")  # fmt: skip
