"""A shuffling sampler gives another order in every epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import LoaderPass, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR112", "same-order-every-epoch", Severity.HIGH, "wrong result",
    Text("a shuffling DistributedSampler gives the same order in every epoch",
         "启用打乱的 DistributedSampler 每个 epoch 的顺序相同"),
    Text("it shuffles with the epoch that set_epoch() told it; without the call every epoch is the first",
         "它按 set_epoch() 给出的 epoch 打乱；不调用时每个 epoch 都与第一个相同"),
    Text("call sampler.set_epoch(epoch) at the start of every epoch", "在每个 epoch 开始时调用 sampler.set_epoch(epoch)"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    last: dict[int, tuple[int, ...]] = {}
    for event in run.of(LoaderPass):
        if not event.distributed or not event.shuffles or len(event.order) < 4:
            continue
        if event.loader in last:
            run.asks(RULE)
        if last.get(event.loader) == event.order:
            yield Shown(
                RULE, event.place,
                Text("the second pass over this loader has the order of the first", "对该加载器的第二遍与第一遍顺序相同"),
                {}, (number("equal indices", "相同的索引数", len(event.order), "", IN_THE_RUN),),
                offered(run.root, event.place, _set_epoch),
            )  # fmt: skip
            return
        last[event.loader] = event.order


def _set_epoch(file: SourceFile, place: Place) -> Iterator[Fix]:
    """Where the function knows the epoch and the loader by name."""
    function = file.function(place.line)
    statement = file.statement(place.line)
    if function is None or not isinstance(statement, ast.For):
        return
    names = {item.arg for item in function.args.args} | {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name)
    }
    loaders = [
        node.id
        for node in ast.walk(statement.iter)
        if isinstance(node, ast.Name) and node.id != "enumerate"
    ]
    if "epoch" in names and loaders:
        yield fix([file.insert_before(statement.lineno, f"{loaders[0]}.sampler.set_epoch(epoch)")],
                  "tell the sampler the epoch", "告知采样器当前 epoch")  # fmt: skip
