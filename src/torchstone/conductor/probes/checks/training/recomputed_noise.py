"""A block that is computed again in the backward pass draws the same random numbers."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recomputed, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR118", "recomputed-with-other-noise", Severity.HIGH, "wrong result",
    Text("a block is computed again with other random numbers", "重新计算某个块时使用了不同的随机数"),
    Text("the backward pass sees other dropout masks than the forward pass: the gradient belongs to another network than the loss",
         "反向传播使用与前向不同的 dropout 掩码：梯度与损失对应的不是同一个网络"),
    Text("leave preserve_rng_state at its default", "保留 preserve_rng_state 的默认值"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    for event in run.of(Recomputed):
        run.asks(RULE)
        if event.drawn:
            yield Shown(
                RULE, event.place,
                Text("this block draws random numbers and is computed again without the state of the generator",
                     "该块使用随机数，却在不恢复随机数状态的情况下重新计算"),
                {}, (number("recomputed blocks with noise", "含随机数的重算块",
                            sum(item.drawn for item in run.of(Recomputed)), "", IN_THE_RUN),),
                offered(run.root, event.place, _preserved),
            )  # fmt: skip
            return


def _preserved(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "checkpoint"):
        for item in call.keywords:
            if item.arg == "preserve_rng_state":
                yield fix([file.replace(item.value, "True")],
                          "restore the random numbers for the second computation", "重算时恢复随机数状态")  # fmt: skip
