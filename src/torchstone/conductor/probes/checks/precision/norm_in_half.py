"""Sums of squares are computed in float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.operators import Operator
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR209", "norm-in-half", Severity.MEDIUM, "instability",
    Text("squares are summed or averaged in half precision", "平方和或均方以半精度计算"),
    Text("a float16 square overflows above 255, and a half-precision mean keeps 8 or 11 bits",
         "float16 的平方在数值超过 255 时溢出，半精度均值只有 8 或 11 位有效位"),
    Text("square and average in float32, and cast the result back", "以 float32 平方并求平均，再转换回来"),
)  # fmt: skip
_HALVES = (torch.float16, torch.bfloat16)
_SUMS = ("mean", "sum", "var", "std", "var_mean", "norm", "linalg_vector_norm")


def check(run: Recording) -> Iterator[Shown]:
    producers = run.producers()
    for item in producers.operators:
        if item.name not in _SUMS or not item.inputs:
            continue
        run.asks(RULE)
        if item.inputs[0].dtype not in _HALVES:
            continue
        if item.output.dtype not in _HALVES or item.inputs[0].dim() < 2:
            continue
        squared = item.name in ("var", "std", "var_mean", "norm", "linalg_vector_norm")
        maker = producers.maker(item.inputs[0])
        if not squared and not (maker is not None and _is_square(maker)):
            continue
        largest = float(item.inputs[0].float().abs().amax())
        yield Shown(
            RULE, item.place,
            Text("squares are averaged in {dtype}", "均方以 {dtype} 计算"),
            {"dtype": str(item.inputs[0].dtype).removeprefix("torch.")},
            (number("largest value here", "此处最大值", largest, "", IN_THE_RUN),
             number("largest float16 value", "float16 最大值", 65504.0, "", IN_THE_RUN)),
            offered(run.root, item.place, _widen_square),
        )  # fmt: skip


def _is_square(item: Operator) -> bool:
    if item.name == "pow":
        return len(item.args) > 1 and item.args[1] == 2
    return item.name == "square" or (item.name == "mul" and item.args[0] is item.args[1])


def _widen_square(file: SourceFile, place: Place) -> Iterator[Fix]:
    """`x * x`, `x ** 2` and `x.pow(2)` at the line, with x in float32."""
    says = ("square in float32", "以 float32 平方")
    for node in file.nodes(place.line, ast.expr):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = file.source(node.left), file.source(node.right)
            if left == right:
                yield fix([file.replace(node, f"{left}.float() * {right}.float()")], *says)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            yield fix([file.replace(node.left, f"{file.source(node.left)}.float()")], *says)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("pow", "square", "var", "std", "norm"):
                owner = node.func.value
                yield fix([file.replace(owner, f"{file.source(owner)}.float()")], *says)
