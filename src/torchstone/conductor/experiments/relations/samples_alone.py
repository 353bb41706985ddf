"""In evaluation a sample's output is the same in its batch and with half of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.observe.compat.trees import tree_leaves

ALONE = ProbeRule(
    "EX116",
    "sample-depends-on-batch",
    Severity.HIGH,
    "wrong result",
    Text(
        "the output for a sample depends on the other samples of its batch",
        "样本的输出取决于同批的其他样本",
    ),
    Text(
        "something is normalised, sorted or summed over the batch axis: results change with the batch size",
        "某处在批维度上做了归一化、排序或求和：结果会随批大小变化",
    ),
    Text(
        "work on the feature axes, and keep batch statistics to training",
        "请在特征维上计算，批统计只用于训练",
    ),
)
RULES = (ALONE,)
_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
_LOW_PRECISION = 5e-2
"""Relative to the largest value: half precision keeps two to three digits."""


def examine(subject: Subject) -> Examined:
    sizes = {len(item.samples) for item in subject.run.batches}
    decided = False
    broken: list[tuple[int, Shown]] = []
    for call in subject.run.calls:
        asked = _asked(subject, call, sizes)
        if asked is None:
            continue
        decided = True
        if asked.size > asked.tolerance:
            modules = sum(1 for _ in call.arguments["self"].modules())
            broken.append((modules, _shown(call, asked)))
    if not decided:
        return NOTHING_TO_LOOK_AT
    # the smallest module that breaks it is where it happens; those around it only pass it on
    first = min(broken, key=lambda item: item[0], default=None)
    return Examined((first[1],) if first else (), decided=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """By how much outputs of the first half differ without the second."""

    size: float
    tolerance: float
    batch: int


def _asked(subject: Subject, call: Call, sizes: set[int]) -> Asked | None:
    """None where the relation cannot be asked of this call."""
    batch = batch_of(call, sizes)
    if batch < 2:
        return None
    whole = _outputs(subject, call, lambda item: item, batch, 0)
    again = _outputs(subject, call, lambda item: item, batch, 1)
    half = _outputs(subject, call, lambda item: item[: batch // 2], batch, 0)
    if not whole or len(whole) != len(half) or len(whole) != len(again):
        return None
    tolerance = max(_TOLERANCE.get(item.dtype, _LOW_PRECISION) for item in whole)
    if max(map(difference, whole, again)) > tolerance:
        return None  # it draws random numbers
    pairs = [
        (_first_half(one, other), other)
        for one, other in zip(whole, half, strict=True)
        if one.dim() and one.shape[0] == batch and other.shape[:1] == (batch // 2,)
    ]
    pairs = [(one, other) for one, other in pairs if one.shape == other.shape]
    if not pairs or not any(bool(one.std(dim=0).any()) for one, _ in pairs if len(one) > 1):
        return None  # equal for all samples: nothing could differ
    return Asked(max(difference(one, other) for one, other in pairs), tolerance, batch)


def _first_half(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """What belongs to the samples of the half: of a table of all against all the corner."""
    if one.dim() != other.dim():
        return one[: len(other)]
    return one[tuple(slice(side) for side in other.shape)]


def batch_of(call: Call, sizes: set[int]) -> int:
    """The batch size of a call of a module; 0 where it is not certain which axis is the batch."""
    if call.code.co_name != "forward" or not isinstance(call.arguments.get("self"), nn.Module):
        return 0
    tensors = [item for item in tree_leaves(_inputs(call.arguments)) if torch.is_tensor(item)]
    found = {item.shape[0] for item in tensors if item.dim()}
    if len(found) != 1 or any(
        isinstance(item, torch.Generator) for item in call.arguments.values()
    ):
        return 0
    (batch,) = found
    # a table of all against all, or an axis of the same size, leaves open which one is meant
    twins = any(batch in item.shape[1:] for item in tensors)
    return 0 if twins or batch not in sizes else batch


def _inputs(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "self"}


def _outputs(subject: Subject, call: Call, cut: Any, batch: int, seed: int) -> list[torch.Tensor]:
    given = call.copy()
    if given is None:
        return []
    arguments = dict(given)
    arguments["self"].eval()
    for name, value in _inputs(arguments).items():
        arguments[name] = _mapped(value, cut, batch)
    with torch.no_grad():
        done = subject.replay(call, arguments, seed)
    leaves = [] if done.error or done.trained else tree_leaves(done.value)
    return [item.detach() for item in leaves if torch.is_tensor(item) and item.is_floating_point()]


def _mapped(value: Any, cut: Any, batch: int) -> Any:
    if isinstance(value, torch.Tensor):
        return cut(value) if value.dim() and value.shape[0] == batch else value
    if isinstance(value, dict):
        return {key: _mapped(item, cut, batch) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_mapped(item, cut, batch) for item in value)
    return value


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, relative to the largest value; infinite for other shapes."""
    if one.shape != other.shape:
        return float("inf")
    if not one.numel():
        return 0.0
    a, b = one.double(), other.double()
    scale = max(float(a.abs().max()), float(b.abs().max()), 1e-12)
    size = float((a - b).abs().max()) / scale
    return size if size == size else 0.0  # not a number in both: another relation's business


def _shown(call: Call, asked: Asked) -> Shown:
    return Shown(
        ALONE,
        call.place,
        Text(
            "without the second half of the batch `{name}` gives other outputs for the first: they differ by {size} of the largest",
            "去掉批的后一半之后，`{name}` 对前一半给出不同的输出：相差最大值的 {size}",
        ),
        {"name": call.name, "size": f"{asked.size:.2%}"},
        (
            number("difference", "差异", 100 * asked.size, "%", ON_A_COPY),
            expected(0.0, "%", ON_A_COPY),
        ),
    )
