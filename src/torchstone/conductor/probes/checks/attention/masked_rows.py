"""A query that may see nothing gives finite numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import cases
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR221", "fully-masked-row", Severity.HIGH, "instability",
    Text("a query whose keys are all masked gives NaN", "所有键都被遮蔽的查询得到 NaN"),
    Text("padding has no key that it may see: its softmax is 0 / 0, and in the next layer NaN times zero reaches every "
         "other row", "填充位置没有可见的键：其 softmax 为 0 / 0，下一层中 NaN 乘零会污染其他所有行"),
    Text("fill with torch.finfo(dtype).min instead of -inf", "使用 torch.finfo(dtype).min 代替 -inf 填充"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    for case in cases(run):
        masks = [item for item in case.tensors if _is_mask(item)]
        if len(masks) != 1 or not all(bool(torch.isfinite(item).all()) for item in case.run()):
            continue
        run.asks(RULE)
        for closed in (False, True):
            other = case.changed(_closing(masks[0], closed))
            broken = [item for item in other.run() if bool(torch.isnan(item).any())]
            operators = other.traced(run) if broken else []
            fill = [item for item in operators if item.name in _FILLS]
            if broken and fill and _mask_differs(masks[0]):
                yield Shown(
                    RULE, fill[-1].place,
                    Text("with one query of {kind} fully masked, {count} of its outputs are NaN",
                         "将 {kind} 的一个查询完全遮蔽后，其 {count} 个输出为 NaN"),
                    {"kind": type(case.module).__name__, "count": str(int(torch.isnan(broken[0]).sum()))},
                    (number("outputs that are not finite", "非有限的输出", int(torch.isnan(broken[0]).sum()), "", ON_A_COPY),),
                    offered(run.root, fill[-1].place, _finite),
                )  # fmt: skip
                return


_FILLS = ("masked_fill", "masked_fill_", "where", "add")


def _is_mask(item: torch.Tensor) -> bool:
    return item.dtype == torch.bool and item.dim() > 2 and item.shape[-1] > 1 and item.shape[-2] > 1


def _mask_differs(mask: torch.Tensor) -> bool:
    """It is made from the data, samples have their own: padding is a case of it."""
    return mask.shape[0] > 1 and not bool((mask == mask[:1]).all())


def _closing(mask: torch.Tensor, value: bool) -> Callable[[Any], Any]:
    def change(item: Any) -> Any:
        if isinstance(item, torch.Tensor) and item.dtype == torch.bool and item.shape == mask.shape:
            other = item.clone()
            other[0, ..., 0, :] = value
            return other
        return item

    return change


def _finite(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "masked_fill", "masked_fill_"):
        if isinstance(call.func, ast.Attribute) and len(call.args) == 2:
            owner = file.source(call.func.value)
            yield fix([file.replace(call.args[1], f"torch.finfo({owner}.dtype).min")],
                      "fill with the lowest finite value", "使用最小的有限值填充")  # fmt: skip
