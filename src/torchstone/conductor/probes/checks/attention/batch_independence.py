"""In evaluation a sample's output does not depend on the other samples of its batch."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import Case, cases, shortened
from torchstone.conductor.probes.replay.divergence import TOLERANCE, difference, first_difference
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR203", "samples-mixed", Severity.HIGH, "wrong result",
    Text("a sample changes the outputs of other samples of its batch", "一个样本改变了同批其他样本的输出"),
    Text("values are reshaped, normalised or routed across the batch: results depend on who else is in it",
         "数值在批维度上被混排、归一化或共同路由：结果取决于同批的其他样本"),
    Text("transpose before reshaping, normalise over features only, and give no sample a share of another's capacity",
         "先转置再变形，仅在特征维上归一化，且不让样本之间争用容量"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    for case in cases(run, top=True):
        case = shortened(case)
        batch = _batch(case)
        if batch < 2:
            continue
        run.asks(RULE)
        other = case.changed(functools.partial(_other_sample, batch=batch))
        before, after = case.run(), other.run()
        sizes = [difference(a[:-1], b[:-1]) for a, b in zip(before, after, strict=False)
                 if a.dim() > 0 and a.shape[0] == batch]  # fmt: skip
        size = max(sizes, default=0.0)
        if size <= TOLERANCE:
            continue
        place = _place(run, case, other, batch)
        if place:
            yield Shown(
                RULE, place,
                Text("another last sample changes the outputs of the others by {size} of their size",
                     "替换最后一个样本会使其他样本的输出变化 {size}"),
                {"size": f"{size:.1%}"},
                (number("change of other samples", "其他样本的变化", 100 * size, "%", ON_A_COPY),
                 expected(0.0, "%", ON_A_COPY)),
            )  # fmt: skip
            return


def _batch(case: Case) -> int:
    """The first size of all inputs, where they share one."""
    sizes = {item.shape[0] for item in case.tensors if item.dim() > 1}
    return sizes.pop() if len(sizes) == 1 else 0


def _other_sample(item: Any, batch: int) -> Any:
    """The last sample replaced by the first one turned around."""
    if (
        not isinstance(item, torch.Tensor)
        or item.dim() < 2
        or item.shape[0] != batch
        or item.dtype == torch.bool
    ):
        return item
    other = item.clone()
    other[-1] = item[0].flip(0) if item[0].numel() > 1 else item[0]
    return other


def _place(run: Recording, case: Case, other: Case, batch: int) -> Place:
    def rest(item: torch.Tensor) -> torch.Tensor | None:
        if item.dim() < 2 or item.shape[0] % batch or not item.shape[0]:
            return None
        share = item.shape[0] // batch
        return item[: (batch - 1) * share]

    first = first_difference(case.traced(run), other.traced(run), rest)
    return first.place if first is not None else Place("", 0)
