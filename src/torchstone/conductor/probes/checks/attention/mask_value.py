"""Masked positions get no weight in a softmax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.operators import Operator, Producers
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR210", "mask-too-weak", Severity.HIGH, "wrong result",
    Text("masked positions keep some weight in the softmax", "被遮蔽的位置在 softmax 中仍有权重"),
    Text("the fill value is too close to the scores: what is masked leaks, the more the larger the scores grow",
         "填充值与分数过于接近：被遮蔽的内容会泄漏，分数越大泄漏越多"),
    Text("fill with torch.finfo(scores.dtype).min or -inf", "使用 torch.finfo(scores.dtype).min 或 -inf 填充"),
)  # fmt: skip
_PASSED = ("_to_copy", "clone", "mul", "div", "sub", "add")
_LEAST_VALUE = -5.0
"""Additive masks are below; what is above is a bias."""
_MOST_WEIGHT = 1e-7
"""Of all masked positions of a row: float32 cannot tell less from nothing."""


def check(run: Recording) -> Iterator[Shown]:
    producers = run.producers()
    for item in producers.operators:
        if item.name != "_softmax" or item.inputs[0].dim() < 2:
            continue
        found = _masked(producers, item.inputs[0])
        if found is None:
            continue
        maker, mask, value = found
        try:
            mask = mask.expand(item.output.shape)
        except RuntimeError:
            continue
        run.asks(RULE)
        open_rows = ~mask.all(-1, keepdim=True)
        weight = (
            float((item.output.float() * (mask & open_rows)).sum(-1).max()) if mask.any() else 0.0
        )
        if weight > _MOST_WEIGHT and _is_uniform(item, mask):
            yield Shown(
                RULE, maker.place,
                Text("masked positions are filled with {value} and keep up to {weight} of the weight",
                     "被遮蔽的位置以 {value} 填充，仍占至多 {weight} 的权重"),
                {"value": f"{value:g}", "weight": f"{weight:.2g}"},
                (number("weight of masked positions", "被遮蔽位置的权重", weight, "", IN_THE_RUN),
                 number("fill value", "填充值", value, "", IN_THE_RUN)),
                offered(run.root, maker.place, _lowest),
            )  # fmt: skip
            return


def _is_uniform(item: Operator, mask: torch.Tensor) -> bool:
    """Whether what is called the mask is one: masked positions weigh less than the open ones."""
    output = item.output.float()
    return bool(output[mask].mean() < output[~mask].mean()) if (~mask).any() else False


def _masked(
    producers: Producers, scores: torch.Tensor
) -> tuple[Operator, torch.Tensor, float] | None:
    """The operator that filled or added a mask, where, and the value."""
    for _ in range(8):
        maker = producers.maker(scores)
        if maker is None:
            return None
        if maker.name in ("masked_fill", "masked_fill_"):
            value = maker.args[2]
            value = float(value) if not isinstance(value, torch.Tensor) else float(value.item())
            return maker, maker.args[1].bool(), value
        if maker.name == "where" and len(maker.inputs) == 3:
            low = maker.inputs[2] if maker.inputs[2].numel() == 1 else None
            if low is not None:
                return maker, ~maker.inputs[0].bool(), float(low.item())
            return None
        if maker.name == "add" and len(maker.inputs) == 2:
            for bias in maker.inputs:
                values = torch.unique(bias.float())
                if len(values) == 2 and float(values[1]) == 0.0 and float(values[0]) < _LEAST_VALUE:
                    return maker, bias == values[0].to(bias.dtype), float(values[0])
        if maker.name not in _PASSED or not maker.inputs:
            return None
        scores = maker.inputs[0]
    return None


def _lowest(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "masked_fill", "masked_fill_"):
        if isinstance(call.func, ast.Attribute) and len(call.args) == 2:
            owner = file.source(call.func.value)
            yield fix([file.replace(call.args[1], f"torch.finfo({owner}.dtype).min")],
                      "fill with the lowest value of the dtype", "使用该数值格式的最小值填充")  # fmt: skip
    for node in file.nodes(place.line, ast.UnaryOp):
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
        ):
            yield fix([file.replace(node, 'float("-inf")')], "fill with -inf", "使用 -inf 填充")
