"""Attention scores are divided by the root of the number of products that each of them sums."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator

import torch
from torch import nn

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.operators import Operator, Producers
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.conductor.probes.templates import SourceFile, called, fix, parsed
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR207", "attention-scale", Severity.HIGH, "wrong result",
    Text("attention scores are scaled by the wrong dimension", "注意力分数按错误的维度缩放"),
    Text("scores of d products have a spread of sqrt(d); another divisor makes the softmax too sharp or too flat",
         "由 d 个乘积求和的分数标准差为 sqrt(d)；除以其他数会使 softmax 过尖或过平"),
    Text("divide by the root of the whole query width, all its parts together",
         "除以完整查询维度（所有部分之和）的平方根"),
)  # fmt: skip
_PASSED = ("_to_copy", "masked_fill", "masked_fill_", "where", "sub", "clone")


def check(run: Recording) -> Iterator[Shown]:
    producers = run.producers()
    told: set[Place] = set()
    for item in producers.operators:
        if item.name != "_softmax" or item.inputs[0].dim() < 3:
            continue
        parts = list(_products(producers, item.inputs[0], 1.0, 0))
        if not parts:
            continue
        run.asks(RULE)
        place = parts[0].operator.place
        shown = _judge(run, parts, place) if place not in told else None
        if shown is not None:
            told.add(place)
            yield shown


class _Product:
    """A matrix product of activations that enters the scores, with the factor on its way."""

    def __init__(self, operator: Operator, inner: int, other: int, factor: float) -> None:
        self.operator, self.inner, self.other, self.factor = operator, inner, other, factor
        """`other` is the width before a weight was multiplied into the query; 0 where none was."""


def _judge(run: Recording, parts: list[_Product], place: Place) -> Shown | None:
    total = sum(part.inner for part in parts)
    factors = {round(part.factor, 6) for part in parts}
    choices = [(part.inner, part.other) if part.other else (part.inner,) for part in parts]
    widths = {sum(chosen) for chosen in itertools.product(*choices)}
    factor = parts[0].factor
    if len(factors) == 1 and any(abs(factor * math.sqrt(width) - 1) < 0.02 for width in widths):
        return None
    implied = 1 / factor**2 if factor else 0.0
    if len(factors) == 1 and (
        abs(implied - round(implied)) > 0.02 * max(implied, 1) or implied < 1.5
    ):
        return None  # a learned or deliberate temperature
    fixes = tuple(_other_width(run, place, total))
    defined = {(edit.path, edit.line) for item in fixes for edit in item.edits}
    if len(defined) == 1:  # the one place where the scale is worked out
        (path, line), name = next(iter(defined)), place.scope.partition(".")[0]
        place = Place(path, line, f"{name}.__init__" if line != place.line else place.scope)
    summed = " + ".join(str(part.inner) for part in parts)
    differ = len(factors) > 1
    return Shown(
        RULE, place,
        Text("the parts of the scores are scaled differently" if differ else
             "scores sum {total} products ({summed}) and are scaled by 1/sqrt({implied})",
             "分数的各部分缩放不一致" if differ else
             "分数由 {total} 个乘积（{summed}）求和，却按 1/sqrt({implied}) 缩放"),
        {"total": str(total), "summed": summed, "implied": str(round(implied))},
        (number("scale", "缩放", factor, "x", IN_THE_RUN),
         expected(1 / math.sqrt(total), "x", IN_THE_RUN)),
        fixes,
    )  # fmt: skip


def _products(
    producers: Producers, tensor: torch.Tensor, factor: float, depth: int
) -> Iterator[_Product]:
    maker = producers.maker(tensor)
    if maker is None or depth > 12:
        return
    if maker.name in ("bmm", "mm", "baddbmm"):
        left, right = maker.inputs[-2:]
        if any(producers.is_weight(item) for item in (left, right)):
            return
        own = _factor(producers, left) * _factor(producers, right)
        yield _Product(maker, left.shape[-1], _before_weight(producers, left), factor * own)
    elif maker.name in ("mul", "div"):
        scalar = _scalar(maker)
        if scalar:
            change = scalar if maker.name == "mul" else 1 / scalar
            yield from _products(producers, maker.inputs[0], factor * change, depth + 1)
    elif maker.name == "add":
        for item in maker.inputs:
            yield from _products(producers, item, factor, depth + 1)
    elif maker.name in _PASSED:
        for item in maker.inputs[:2]:
            yield from _products(producers, item, factor, depth + 1)


def _scalar(maker: Operator) -> float:
    """The number that a tensor is multiplied with or divided by; 0 where it is no number."""
    other = maker.args[1] if len(maker.args) > 1 else 0.0
    if isinstance(other, torch.Tensor):
        return float(other) if other.numel() == 1 else 0.0
    return float(other)


def _factor(producers: Producers, tensor: torch.Tensor) -> float:
    """By what a query or key was multiplied before the product."""
    factor = 1.0
    for _ in range(4):
        maker = producers.maker(tensor)
        if maker is None or maker.name not in ("mul", "div", "_to_copy"):
            break
        if maker.name != "_to_copy":
            scalar = _scalar(maker)
            if not scalar:
                break
            factor *= scalar if maker.name == "mul" else 1 / scalar
        tensor = maker.inputs[0]
    return factor


def _before_weight(producers: Producers, tensor: torch.Tensor) -> int:
    """The width of a query before a weight of its head was multiplied into it."""
    maker = producers.maker(tensor)
    if maker is not None and maker.name == "bmm":
        if any(producers.is_weight(item) for item in maker.inputs):
            return int(maker.inputs[0].shape[-1])
    return 0


def _other_width(run: Recording, place: Place, total: int) -> Iterator[Fix]:
    """The expression under the root, replaced by attributes of the module that give the right width."""
    name = place.scope.partition(".")[0]
    module = next((item for item in run.modules if type(item).__name__ == name), None)
    file = parsed(run.root, place)
    if module is None or file is None:
        return
    sizes = {key: value for key, value in vars(module).items()
             if isinstance(value, int) and not isinstance(value, bool)}  # fmt: skip
    exact = [f"self.{key}" for key, value in sizes.items() if value == total]
    sums = [f"(self.{a} + self.{b})" for (a, x), (b, y) in itertools.combinations(sizes.items(), 2)
            if x + y == total]  # fmt: skip
    for node in _roots(file, name):
        old = file.source(node)
        for new in (*sums, *exact, *_of_settings(file, module, node, total)):
            if new.strip("()") != old.strip("()"):
                yield fix(
                    [file.replace(node, new)],
                    f"scale by the root of {total}",
                    f"按 {total} 的平方根缩放",
                )


def _of_settings(file: SourceFile, module: nn.Module, node: ast.expr, total: int) -> Iterator[str]:
    """Other sizes of the settings that the expression reads from: `cfg.d_qk` for `cfg.d_nope`."""
    if not isinstance(node, ast.Attribute):
        return
    owner = file.source(node.value)
    for settings in vars(module).values():
        if isinstance(settings, (int, float, str, torch.Tensor)) or not hasattr(
            settings, node.attr
        ):
            continue
        sizes = {key: value for key in dir(settings) if not key.startswith("_")
                 and isinstance(value := getattr(settings, key), int) and not isinstance(value, bool)}  # fmt: skip
        exact = [f"{owner}.{key}" for key, value in sizes.items() if value == total]
        sums = [f"({owner}.{node.attr} + {owner}.{key})" for key, value in sizes.items()
                if value + sizes.get(node.attr, 0) == total]  # fmt: skip
        yield from sums[:1]
        yield from exact[:2]
        return


def _roots(file: SourceFile, name: str) -> Iterator[ast.expr]:
    """What stands under a root in a class: `x ** -0.5`, `math.sqrt(x)`."""
    for kind in ast.walk(file.tree):
        if not isinstance(kind, ast.ClassDef) or kind.name != name:
            continue
        for node in ast.walk(kind):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                if file.source(node.right).strip("()") in ("-0.5", "0.5", "-1 / 2"):
                    yield node.left
            elif isinstance(node, ast.Call) and called(node) in ("sqrt", "rsqrt") and node.args:
                yield node.args[0]
