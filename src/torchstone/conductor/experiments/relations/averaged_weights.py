"""An average of weights moves towards the weights that it averages, every tensor of it alike."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
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
RULES = (AVERAGE,)
_CALLS = 60
"""Updates: with a decay of 0.999 the distance falls by 6 %, far above rounding."""
_FOLLOWS = 0.3
"""Share of the median approach that every tensor must reach."""
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sets of tensors with the same names and shapes in the arguments of a call."""

    source: Tensors
    target: Tensors


def examine(subject: Subject) -> Examined:
    shown: list[Shown] = []
    decided = False
    for call in subject.run.calls:
        if call.number or not any(
            word in call.name.lower() for word in ("update", "ema", "average", "step", "momentum")
        ):
            continue
        found = _examine_call(subject, call)
        decided = decided or found is not None
        shown += found or []
    return Examined(tuple(shown), True) if decided else NOTHING_TO_LOOK_AT


def _examine_call(subject: Subject, call: Call) -> list[Shown] | None:
    arguments = call.copy()
    if arguments is None:
        return None
    for pair in _pairs(arguments):
        _perturb(pair.source)
        start = {name: item.detach().clone() for name, item in pair.target.items()}
        fixed = {name: item.detach().clone() for name, item in pair.source.items()}
        done = subject.replay(call, arguments)
        if done.error or done.trained:
            return None
        if _moved(fixed, pair.source) or not _moved(start, pair.target):
            continue  # the source changed, or nothing did: not an average of it
        if all(torch.equal(pair.target[name], pair.source[name]) for name in start):
            continue  # a plain copy
        for _ in range(_CALLS - 1):
            if subject.replay(call, arguments).error:
                return None
        return _judge(call, pair, start)
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
