"""An average of weights moves towards the weights that it averages, every tensor of it alike."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.subject import Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

AVERAGE = ProbeRule(
    "EX108",
    "average-does-not-follow",
    Severity.HIGH,
    "wrong result",
    Text(
        "an average of weights does not move towards the weights",
        "权重的滑动平均没有向当前权重靠近",
    ),
    Text(
        "what is evaluated or saved is another model than the one that was trained",
        "被评估或保存的模型与训练得到的模型不同",
    ),
    Text(
        "average every parameter and every float buffer with `average += (1 - decay) * (weight - average)`, in float32",
        "对每个参数与浮点缓冲区使用 `average += (1 - decay) * (weight - average)`，并使用 float32",
    ),
)
SWAPPED = ProbeRule(
    "EX127",
    "average-keeps-too-little",
    Severity.HIGH,
    "wrong result",
    Text(
        "an average of weights keeps the share that it should replace",
        "权重的滑动平均保留的恰是应被替换的那一份",
    ),
    Text(
        "decay and 1 - decay are exchanged: the average is nearly the weights of the last step",
        "decay 与 1 - decay 互换：平均值几乎等于最后一步的权重",
    ),
    Text(
        "keep `decay` of the average and add `1 - decay` of the weights",
        "保留平均值的 `decay` 份，并加上权重的 `1 - decay` 份",
    ),
)
RULES = (AVERAGE, SWAPPED)
_CALLS = 60
"""Updates: with a decay of 0.999 the distance falls by 6 %, far above rounding."""
_FOLLOWS = 0.3
"""Share of the median approach that every tensor must reach."""
_SHARES = re.compile(r"decay|momentum|beta|keep|^m$", re.I)
"""Names of settings that say how much of an average is kept."""
_FIRST_CALLS = 3
"""A share that is the same in so many calls is a setting; one that is warming up changes."""
_SAME_SHARE = 0.02
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sets of tensors with the same names and shapes in the arguments of a call."""

    source: Tensors
    target: Tensors


def examine(subject: Subject) -> Examined:
    shown: list[Shown] = []
    asked: set[str] = set()
    for call in subject.run.calls:
        if call.number or not any(
            word in call.name.lower() for word in ("update", "ema", "average", "step", "momentum")
        ):
            continue
        found = _examine_call(subject, call)
        if found is not None:
            shown += found.shown
            asked |= {AVERAGE.id, SWAPPED.id} if found.follows else {AVERAGE.id}
    broken = {item.rule.id for item in shown}
    return Examined(tuple(shown), bool(asked), tuple(sorted(asked - broken)))


@dataclass(frozen=True, slots=True)
class Judged:
    """What one call shows."""

    shown: list[Shown]
    follows: bool
    """It keeps as much of the average as one of its settings says."""


def _examine_call(subject: Subject, call: Call) -> Judged | None:
    arguments = call.copy()
    if arguments is None:
        return None
    for pair in _pairs(arguments):
        _perturb(pair.source)
        start = {name: item.detach().clone() for name, item in pair.target.items()}
        fixed = {name: item.detach().clone() for name, item in pair.source.items()}
        settings = dict(_settings(arguments))
        done = subject.replay(call, arguments)
        if done.error or done.trained:
            return None
        distances = [_distances(start, fixed), _distances(pair.target, fixed)]
        if _moved(fixed, pair.source) or not _moved(start, pair.target):
            continue  # the source changed, or nothing did: not an average of it
        if all(torch.equal(pair.target[name], pair.source[name]) for name in start):
            continue  # a plain copy
        for _ in range(_CALLS - 1):
            if subject.replay(call, arguments).error:
                return None
            distances.append(_distances(pair.target, fixed))
        shares = _shares(distances)
        shown = _judge(call, pair, start) or _judge_share(call, settings, shares)
        follows = any(
            shares and all(abs(share - value) <= _SAME_SHARE * value for share in shares)
            for value in settings.values()
        )
        return Judged(shown, follows)
    return None


def _judge(call: Call, pair: Pair, start: Tensors) -> list[Shown]:
    approach = {}
    for name, item in pair.target.items():
        before = float((start[name].double() - pair.source[name].double()).norm())
        after = float((item.double() - pair.source[name].double()).norm())
        if before > 0:
            approach[name] = 1 - after / before
    middle = statistics.median(approach.values()) if approach else 0.0
    behind = [name for name, value in approach.items() if value < _FOLLOWS * middle or value <= 0]
    if middle > 0 and not behind:
        return []
    name = behind[0] if behind else next(iter(approach), "")
    return [
        Shown(
            AVERAGE,
            call.place,
            Text(
                "after {calls} calls of `{call}` with the same weights, {count} of {total} tensors are no nearer to "
                "them, as {name}",
                "以相同权重调用 `{call}` {calls} 次之后，{total} 个张量中有 {count} 个没有靠近，例如 {name}",
            ),
            {
                "calls": str(_CALLS),
                "call": call.name,
                "count": str(len(behind) or len(approach)),
                "total": str(len(approach)),
                "name": name,
            },
            (
                number(
                    "approach of this tensor",
                    "该张量的靠近程度",
                    approach.get(name, 0.0),
                    "",
                    IN_THE_RUN,
                ),
                number(
                    "approach of the median tensor", "中位张量的靠近程度", middle, "", IN_THE_RUN
                ),
            ),
        )
    ]


def _settings(arguments: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Numbers that say how much of the average is kept, by name."""
    owner = arguments.get("self")
    held = vars(owner) if hasattr(owner, "__dict__") else {}
    for name, value in (*held.items(), *arguments.items()):
        if isinstance(value, float) and _SHARES.search(name) and 0.5 < value < 1:
            yield name, value


def _distances(one: Tensors, other: Tensors) -> list[float]:
    return [float((one[name].double() - other[name].double()).norm()) for name in other]


def _shares(distances: Sequence[list[float]]) -> list[float]:
    """What each of the first calls keeps of the distance, in the middle of all tensors."""
    shares = [
        [new / old for old, new in zip(before, after, strict=True) if old > 0]
        for before, after in itertools.pairwise(distances[: _FIRST_CALLS + 1])
    ]
    return [statistics.median(one) for one in shares if one]


def _judge_share(call: Call, settings: Mapping[str, float], kept: Sequence[float]) -> list[Shown]:
    """What is kept against the settings."""
    for name, value in settings.items():
        swapped = [abs(share - (1 - value)) <= _SAME_SHARE * value for share in kept]
        if len(kept) == _FIRST_CALLS and all(swapped) and 1 - value < value / 2:
            return [
                Shown(
                    SWAPPED,
                    call.place,
                    Text(
                        "`{call}` keeps {share} of the average, where `{name}` is {value}",
                        "`{call}` 只保留平均值的 {share}，而 `{name}` 为 {value}",
                    ),
                    {
                        "call": call.name,
                        "share": f"{kept[0]:.3g}",
                        "name": name,
                        "value": f"{value:g}",
                    },
                    (
                        number("share that is kept", "保留的份额", kept[0], "", IN_THE_RUN),
                        expected(value, "", IN_THE_RUN),
                    ),
                )
            ]
    return []


def _pairs(arguments: Mapping[str, Any]) -> Iterator[Pair]:
    """Every two sets with the same float tensors: either may be the average of the other."""
    sets = list(_sets(arguments))
    for one in sets:
        for other in sets:
            shared = [
                name
                for name, item in one.items()
                if name in other
                and other[name].shape == item.shape
                and other[name].data_ptr() != item.data_ptr()
            ]
            if one is not other and shared and 2 * len(shared) > max(len(one), len(other)):
                yield Pair({k: one[k] for k in shared}, {k: other[k] for k in shared})


def _sets(arguments: Mapping[str, Any], depth: int = 0) -> Iterator[Tensors]:
    for value in arguments.values():
        if isinstance(value, nn.Module):
            yield _floats(value.state_dict(keep_vars=True))
            inner = {
                key: item
                for key, item in vars(value).items()
                if key not in ("_modules", "_parameters", "_buffers")
            }
            children = dict(value.named_children())
            if depth < 1:
                yield from _sets({**inner, **children}, depth + 1)
        elif isinstance(value, dict):
            found = _floats(value)
            if found:
                yield found
        elif depth < 1 and hasattr(value, "__dict__"):
            yield from _sets(vars(value), depth + 1)


def _floats(values: Mapping[Any, Any]) -> Tensors:
    return {
        str(name): item
        for name, item in values.items()
        if isinstance(item, torch.Tensor) and item.is_floating_point() and item.numel()
    }


def _perturb(tensors: Tensors) -> None:
    """Other values of the same size, the same on every machine."""
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for item in tensors.values():
            size = max(float(item.float().abs().mean()), 1e-2)
            noise = torch.rand(item.shape, generator=generator) + 0.5
            item.add_((size * noise).to(item.dtype))


def _moved(before: Tensors, after: Tensors) -> bool:
    return any(not torch.equal(item, after[name]) for name, item in before.items())
