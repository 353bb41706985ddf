"""A loss is computed from float32 values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Loss, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, significant_bits
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR114", "loss-in-half", Severity.HIGH, "instability",
    Text("a loss is computed in half precision", "损失以半精度计算"),
    Text("its log and its mean have 8 or 11 significant bits: small differences between logits are lost, "
         "and so are their gradients; inside autocast it would run in float32",
         "其对数与平均只有 8 或 11 位有效位：logits 之间的微小差异及其梯度会丢失；在 autocast 内会以 float32 计算"),
    Text("compute the loss inside the autocast region, or from `.float()` values",
         "在 autocast 区域内计算损失，或先转换为 `.float()`"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    scopes = {(place.path, place.scope) for place in run.autocasts}
    for loss in run.of(Loss):
        run.asks(RULE)
        if loss.dtype not in (torch.float16, torch.bfloat16):
            continue
        outside = [place for place in loss.stack if (place.path, place.scope) in scopes]
        place = outside[0] if outside else loss.place
        bits = 11 if loss.dtype is torch.float16 else 8
        yield Shown(
            RULE, place,
            Text("{name} gets {dtype} values outside autocast", "{name} 在 autocast 之外得到 {dtype} 数值"),
            {"name": loss.name, "dtype": str(loss.dtype).removeprefix("torch.")},
            (significant_bits(bits, IN_THE_RUN),),
            (*offered(run.root, place, _into_region), *offered(run.root, loss.place, _widen)),
        )  # fmt: skip
        return


def _into_region(file: SourceFile, place: Place) -> Iterator[Fix]:
    """The statement moves to the end of the autocast block right before it."""
    statement = file.statement(place.line)
    for node in ast.walk(file.function(place.line) or file.tree):
        if (
            isinstance(node, ast.With)
            and statement is not None
            and node.end_lineno == statement.lineno - 1
        ):
            if "autocast" in file.source(node.items[0].context_expr):
                depth = file.indent(node.body[-1].lineno)
                rows = file.whole(statement).splitlines()
                old = file.indent(statement.lineno)
                text = "".join(f"{depth}{row.removeprefix(old)}\n" for row in rows)
                edit = file.delete(statement)
                moved = type(edit)(edit.path, edit.line, 0, edit.end_line, 0, text)
                yield fix(
                    [moved],
                    "compute the loss inside the autocast region",
                    "在 autocast 区域内计算损失",
                )


def _widen(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.nodes(place.line, ast.Call):
        if (
            isinstance(call, ast.Call)
            and call.args
            and isinstance(call.args[0], (ast.Name, ast.Attribute))
        ):
            if "loss" in file.source(call.func) or "entropy" in file.source(call.func):
                yield fix([file.replace(call.args[0], f"{file.source(call.args[0])}.float()")],
                          "compute the loss in float32", "以 float32 计算损失")  # fmt: skip
