"""Checks of what a caller hands in: the error says what was given and what would do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from torchstone.core.errors import UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.cost.records.ledger import Cost


def whole(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(
            name,
            repr(value),
            Text(f"a whole number of at least {least}", f"不小于 {least} 的整数"),
            Text(f"pass another {_last(name)}", f"请改传 {_last(name)}"),
        )
    return value


def positive(name: str, value: object) -> float:
    """A finite number greater than 0."""
    wrong_kind = isinstance(value, bool) or not isinstance(value, (int, float))
    if wrong_kind or not math.isfinite(value) or value <= 0:  # type: ignore[arg-type, operator]
        raise UsageError(
            name,
            repr(value),
            Text("a number greater than 0", "大于 0 的数"),
            Text(f"pass another {_last(name)}", f"请改传 {_last(name)}"),
        )
    return float(value)  # type: ignore[arg-type]


def _last(name: str) -> str:
    return name.rpartition(": ")[2]


def fraction(name: str, value: object) -> float:
    """A number greater than 0 and at most 1."""
    number = positive(name, value)
    if number > 1:
        raise UsageError(
            name,
            repr(value),
            Text("at most 1", "不大于 1"),
            Text(f"pass {name} as a share: 0.5 is half", f"{name} 是份额：0.5 表示一半"),
        )
    return number


def choice(name: str, value: object, choices: Sequence[str]) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in choices:
        raise unknown(name, str(value), list(choices))
    return value


def module(where: str, value: object) -> nn.Module:
    """A model of torch."""
    if not isinstance(value, nn.Module):
        raise UsageError(
            where,
            type(value).__name__,
            "torch.nn.Module",
            Text("pass the model itself", "请传入模型本身"),
        )
    return value


def cost_of(source: object) -> Cost:
    """The cost itself, or the one that a report holds in its `cost`."""
    found = source if isinstance(source, Cost) else getattr(source, "cost", None)
    if not isinstance(found, Cost):
        raise UsageError(
            "cost",
            type(source).__name__,
            Text("a cost, or a report that holds one", "成本，或含有成本的报告"),
            Text("pass what measure_cost(...) returned", "请传入 measure_cost(...) 的返回值"),
        )
    return found


def main_format(cost: Cost) -> str:
    """The number format in which most of the matrix products are done."""
    by_format: dict[str, int] = {}
    for key, tally in cost.entries.items():
        by_format[key.dtype] = by_format.get(key.dtype, 0) + tally.flops
    best = max(by_format, key=lambda name: by_format[name], default="")
    if not by_format.get(best):
        raise UsageError(
            "cost",
            "no matrix products",
            Text("a cost with FLOPs", "含有 FLOPs 的成本"),
            Text(
                "pass the cost of a model that multiplies matrices", "请传入含矩阵乘法的模型的成本"
            ),
        )
    return best
