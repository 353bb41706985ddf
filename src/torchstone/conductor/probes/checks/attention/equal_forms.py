"""Two forms of one computation that a switch chooses between give the same output."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from dataclasses import replace

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import Case, cases
from torchstone.conductor.probes.replay.divergence import difference
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR206", "forms-differ", Severity.HIGH, "wrong result",
    Text("two forms of one computation give different outputs", "同一计算的两种形式给出不同输出"),
    Text("the form for decoding or speed is not the one that was trained", "用于解码或加速的形式与训练时的形式不一致"),
    Text("compare both forms step by step on random weights", "在随机权重上逐步比较两种形式"),
)  # fmt: skip
_SWITCHES = (
    "absorb",
    "fused",
    "flash",
    "sdpa",
    "naive",
    "efficient",
    "fast",
    "optimized",
    "optimised",
    "grouped",
)
"""Words of the field for forms that must be equal."""
_TOLERANCE = 1e-3


def check(run: Recording) -> Iterator[Shown]:
    for case in cases(run, stateless=False):
        for name, one, other in _forms(case):
            run.asks(RULE)
            before, after = one.run(), other.run()
            size = max((difference(a, b) for a, b in zip(before, after, strict=False)), default=0.0)
            if size <= _TOLERANCE:
                continue
            place = _place(run, one, other)
            if not place:
                continue
            yield Shown(
                RULE, place,
                Text("{kind} with {name} on and off gives outputs that differ by {size}",
                     "{kind} 在 {name} 开启与关闭时输出相差 {size}"),
                {"kind": type(case.module).__name__, "name": name, "size": f"{size:.1%}"},
                (number("difference", "差异", 100 * size, "%", ON_A_COPY),
                 expected(0.0, "%", ON_A_COPY)),
            )  # fmt: skip


def _is_switch(name: str) -> bool:
    return any(word in name.lower() for word in _SWITCHES)


def _forms(case: Case) -> Iterator[tuple[str, Case, Case]]:
    """The case with a switch off and on: an attribute of the module or an argument of its call."""
    for name, value in vars(case.module).items():
        if isinstance(value, bool) and _is_switch(name):
            pair = [copy.deepcopy(case.module), copy.deepcopy(case.module)]
            setattr(pair[0], name, False)
            setattr(pair[1], name, True)
            yield name, replace(case, module=pair[0]), replace(case, module=pair[1])
    for name, item in inspect.signature(case.module.forward).parameters.items():
        if isinstance(item.default, bool) and _is_switch(name):
            yield (name, replace(case, kwargs={**case.kwargs, name: False}),
                   replace(case, kwargs={**case.kwargs, name: True}))  # fmt: skip


def _place(run: Recording, one: Case, other: Case) -> Place:
    """The last line that only one form has, before the first line that both have and differ in."""
    first, second = one.traced(run), other.traced(run)
    known = {(item.place, item.name) for item in first}
    values: dict[tuple[Place, str], list[torch.Tensor]] = {}
    for item in first:
        values.setdefault((item.place, item.name), []).append(item.output)
    last = Place("", 0)
    for item in second:
        key = (item.place, item.name)
        if key not in known:
            last = item.place
            continue
        other_value = values[key].pop(0) if values[key] else None
        if last and other_value is not None and other_value.shape == item.output.shape:
            if (
                item.output.is_floating_point()
                and difference(other_value, item.output) > _TOLERANCE
            ):
                return last
    return last
