"""What stands in padded positions does not change the outputs of the others."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import Case, cases, with_other_tokens
from torchstone.conductor.probes.replay.divergence import TOLERANCE, difference, first_difference
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR202", "padding-leaks", Severity.HIGH, "wrong result",
    Text("the content of padded positions changes the outputs of real ones", "填充位置的内容改变了真实位置的输出"),
    Text("the padding mask does not reach every place that mixes positions", "填充掩码没有作用于所有混合位置的地方"),
    Text("apply the padding mask to the scores and to every mean over positions",
         "将填充掩码作用于注意力分数以及所有跨位置的平均"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    for case in cases(run, top=True):
        tokens = case.tokens
        found = _keep(case, tokens) if tokens is not None else None
        if tokens is None or found is None:
            continue
        run.asks(RULE)
        padded, keep = found
        other = with_other_tokens(padded, ~keep)
        size = max(
            (_change(a, b, keep) for a, b in zip(padded.run(), other.run(), strict=False)),
            default=0.0,
        )
        if size <= TOLERANCE:
            continue
        place = _place(run, padded, other, keep)
        if place:
            yield Shown(
                RULE, place,
                Text("other values in padded positions change the outputs of real ones by {size}",
                     "改变填充位置的值会使真实位置的输出变化 {size}"),
                {"size": f"{size:.1%}"},
                (number("change of real positions", "真实位置的变化", 100 * size, "%", ON_A_COPY),
                 expected(0.0, "%", ON_A_COPY)),
            )  # fmt: skip
            return


def _keep(case: Case, tokens: torch.Tensor) -> tuple[Case, torch.Tensor] | None:
    """A call with padding at the ends, and where it is not."""
    masks = [item for item in case.tensors if item.shape == tokens.shape and _is_mask(item)]
    if len(masks) != 1 or len(torch.unique(masks[0])) > 2:
        return None
    mask = masks[0]
    kept_value = (
        mask[:, 0].float().median()
    )  # a sequence begins with real tokens more often than not
    keep = mask.float() == kept_value
    if bool(keep.all()):
        return None
    return case, keep


def _is_mask(item: torch.Tensor) -> bool:
    return item.dtype == torch.bool or bool(((item == 0) | (item == 1)).all())


def _change(a: torch.Tensor, b: torch.Tensor, keep: torch.Tensor) -> float:
    if a.shape[:2] == keep.shape:
        return difference(a[keep], b[keep])
    return difference(a, b)


def _place(run: Recording, case: Case, other: Case, keep: torch.Tensor) -> Place:
    length = keep.shape[1]

    def real(item: torch.Tensor) -> torch.Tensor | None:
        if item.dim() > 2 and item.shape[:2] == keep.shape:
            return item[keep]
        if item.dim() == 2 and item.shape[0] == keep.shape[0] and length not in item.shape:
            return item
        return None

    first = first_difference(case.traced(run), other.traced(run), real)
    return first.place if first is not None else Place("", 0)
