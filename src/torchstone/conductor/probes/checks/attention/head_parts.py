"""The parts of queries and keys that are multiplied belong together."""

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
    "PR211", "head-parts-mispaired", Severity.HIGH, "wrong result",
    Text("rotated and unrotated parts of queries and keys are multiplied with each other", "查询与键的旋转部分和非旋转部分错位相乘"),
    Text("the widths agree, so that nothing fails, but scores no longer depend on content and relative position",
         "总宽度一致所以不会报错，但分数不再由内容和相对位置决定"),
    Text("concatenate the parts of queries and keys in the same order", "以相同顺序拼接查询与键的各部分"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    producers = run.producers()
    for item in producers.operators:
        if item.name != "bmm" or len(item.inputs) != 2:
            continue
        makers = [producers.maker(given) for given in item.inputs]
        if any(maker is None or maker.name != "cat" or len(maker.inputs) < 2 for maker in makers):
            continue
        run.asks(RULE)
        query, key = (_rotated(producers, maker) for maker in makers if maker is not None)
        if len(query) == len(key) and sorted(query) == sorted(key) and query != key:
            place = makers[1].place if makers[1] is not None else item.place
            yield Shown(
                RULE, place,
                Text("queries are {query}, keys are {key}", "查询为 {query}，键为 {key}"),
                {"query": _words(query), "key": _words(key)},
                (number("parts", "部分数", len(query), "", IN_THE_RUN),),
                offered(run.root, place, _turned),
            )  # fmt: skip
            return


def _rotated(producers: Producers, joined: Operator) -> list[bool]:
    """Of each part, whether it was multiplied by cosines: not those of the layers before."""
    return [_has_angle(producers, part) for part in joined.inputs]


def _has_angle(producers: Producers, part: torch.Tensor) -> bool:
    waiting = [part]
    for _ in range(_STEPS):
        if not waiting:
            return False
        maker = producers.maker(waiting.pop(0))
        if maker is None or maker.name in ("mm", "addmm", "bmm"):
            continue
        if maker.name in ("cos", "sin", "view_as_complex"):
            return True
        waiting += maker.inputs
    return False


def _words(parts: list[bool]) -> str:
    return "[" + ", ".join("rotated" if item else "plain" for item in parts) + "]"


def _turned(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "cat", "concat"):
        given = call.args[0] if call.args else None
        if isinstance(given, (ast.List, ast.Tuple)) and len(given.elts) == 2:
            first, second = (file.source(item) for item in given.elts)
            yield fix([file.replace(given, f"[{second}, {first}]")],
                      "concatenate in the order of the queries", "按查询的顺序拼接")  # fmt: skip


_STEPS = 40
"""Operators between a concatenation and a rotation, many times over."""
