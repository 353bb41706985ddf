"""An eps that guards a division is not rounded to zero."""

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
    "PR115", "eps-vanishes", Severity.HIGH, "instability",
    Text("an eps is zero in float16", "eps 在 float16 中为零"),
    Text("values below 3e-8 are rounded to zero in float16, so that nothing guards the division or logarithm",
         "小于 3e-8 的数在 float16 中会舍入为零，除法或对数失去保护"),
    Text("add the eps in float32, or take one that float16 can hold", "以 float32 加上 eps，或使用 float16 可表示的值"),
)  # fmt: skip
_CALLS = ("half", "to", "float16")


def check(run: Recording) -> Iterator[Shown]:
    for item in run.forward_operators():
        if item.name not in ("add", "clamp", "clamp_min") or len(item.args) < 2:
            continue
        eps = item.args[1]
        if not isinstance(eps, float) or eps == 0.0:
            continue
        run.asks(RULE)
        if item.inputs[0].dtype is not torch.float16:
            continue
        if float(torch.tensor(eps, dtype=torch.float16)) != 0.0:
            continue
        yield Shown(
            RULE, item.place,
            Text("{eps} added to a float16 value is zero", "加到 float16 数值上的 {eps} 等于零"),
            {"eps": f"{eps:g}"},
            (number("eps", "eps", eps, "", IN_THE_RUN),
             number("smallest float16 value", "float16 最小正数", 2.0**-24, "", IN_THE_RUN)),
            offered(run.root, item.place, _widen, _larger),
        )  # fmt: skip


def _widen(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.nodes(place.line, ast.Call):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "half"
        ):
            owner = file.source(call.func.value)
            yield fix(
                [file.replace(call, f"{owner}.float()")],
                "keep the value in float32",
                "保持 float32",
            )


def _larger(file: SourceFile, place: Place) -> Iterator[Fix]:
    for node in file.nodes(place.line, ast.Constant):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, float)
            and 0 < node.value < 3e-8
        ):
            yield fix(
                [file.replace(node, "1e-5")],
                "an eps that float16 can hold",
                "使用 float16 可表示的 eps",
            )
