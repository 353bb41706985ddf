"""Integers that a half-precision format cannot hold are not cast to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR119", "integers-rounded", Severity.MEDIUM, "wrong result",
    Text("integers are rounded by a cast to half precision", "整数被转换为半精度时发生舍入"),
    Text("bfloat16 holds integers exactly up to 256, float16 up to 2048: differences between neighbours are lost before "
         "anything is subtracted", "bfloat16 只能精确表示到 256 的整数，float16 到 2048：相邻值之间的差异在相减之前就已丢失"),
    Text("compute in float32 and cast the result", "以 float32 计算，再转换结果"),
)  # fmt: skip
_HALVES = (torch.float16, torch.bfloat16)
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)
_LEAST_SHARE = 0.01


def check(run: Recording) -> Iterator[Shown]:
    for item in run.forward_operators():
        if (
            item.name != "_to_copy"
            or item.output.dtype not in _HALVES
            or item.inputs[0].dtype not in _INTEGERS
        ):
            continue
        run.asks(RULE)
        given = item.inputs[0]
        share = float((item.output.to(torch.int64) != given).float().mean())
        if share < _LEAST_SHARE:
            continue
        error = float((item.output.double() - given.double()).abs().max())
        yield Shown(
            RULE, item.place,
            Text("{share} of the integers change when they become {dtype}, by up to {error}",
                 "转换为 {dtype} 时 {share} 的整数发生变化，最多相差 {error}"),
            {"share": f"{share:.0%}", "dtype": str(item.output.dtype).removeprefix("torch."), "error": f"{error:g}"},
            (number("rounded integers", "被舍入的整数", 100 * share, "%", IN_THE_RUN),
             number("largest error", "最大误差", error, "", IN_THE_RUN)),
            offered(run.root, item.place, _later),
        )  # fmt: skip
        return


def _later(file: SourceFile, place: Place) -> Iterator[Fix]:
    """The whole expression in float32, the cast at its end."""
    statement = file.statement(place.line)
    value = getattr(statement, "value", None)
    for call in file.calls(place.line, "to", "half", "bfloat16"):
        if (
            isinstance(value, ast.expr)
            and value is not call
            and isinstance(call.func, ast.Attribute)
        ):
            owner, text = file.source(call.func.value), file.source(value)
            tail = file.source(call)[len(owner) :]
            wide = text.replace(file.source(call), f"{owner}.float()")
            yield fix([file.replace(value, f"({wide}){tail}")], "cast after the computation", "计算之后再转换")  # fmt: skip
