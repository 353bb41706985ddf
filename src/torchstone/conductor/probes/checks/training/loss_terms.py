"""A loss term that a module computes reaches the loss, with a gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch import nn

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.operators import Producers
from torchstone.conductor.probes.harvest.recording import LossTerm, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import NOWHERE, Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR305", "loss-term-without-effect", Severity.HIGH, "wrong result",
    Text("a loss term has no effect on the weights", "某个损失项对权重没有影响"),
    Text("a term such as a load-balancing loss is left out of the loss, or cut off from the weights it is meant for",
         "负载均衡等损失项没有加入总损失，或与其对应的权重断开"),
    Text("add the term to the loss, and keep it differentiable", "将该项加入损失，并保持可微"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    terms = list(run.of(LossTerm))
    if not terms:
        return
    run.asks(RULE)
    producers = run.producers()
    told: set[Place] = set()
    for term in terms:
        if term.added and float(term.tensor.detach()) == 0.0:  # where a sum begins
            continue
        place = _cut_at(producers, term) if term.added else _dropped_at(producers, term)
        if not place or place in told:
            continue
        told.add(place)
        what = (
            Text("this cuts a loss term off: it is added to the loss, but has no gradient",
                 "此处切断了损失项：它被加入损失，却没有梯度") if term.added
            else Text("a loss term ends here and never reaches the loss", "损失项止于此处，没有到达总损失")
        )  # fmt: skip
        yield Shown(
            RULE, place, what, {},
            (number("value of the term", "该项的值", float(term.tensor.detach()), "", IN_THE_RUN),
             number("its gradient", "其梯度", 0.0, "", IN_THE_RUN)),
            offered(run.root, place, _undetached) if term.added else (),
        )  # fmt: skip


def _cut_at(producers: Producers, term: LossTerm) -> Place:
    """Where a term that depends on weights was detached."""
    cuts: list[Place] = []
    depends = False
    for item in producers.ancestors(term.tensor):
        depends = depends or any(isinstance(given, nn.Parameter) for given in item.inputs)
        if item.name in ("detach", "alias") and item.place:
            cuts.append(item.place)
    if not depends:
        return NOWHERE
    first = next(producers.ancestors(term.tensor), None)
    return cuts[0] if cuts else (first.place if first else NOWHERE)


def _dropped_at(producers: Producers, term: LossTerm) -> Place:
    last = producers.last_use(term.tensor)
    return last.place if last is not None else NOWHERE


def _undetached(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "detach"):
        if isinstance(call.func, ast.Attribute):
            yield fix([file.replace(call, file.source(call.func.value))],
                      "keep the term differentiable", "保持该项可微")  # fmt: skip
