"""More padding changes nothing: the same samples with three more columns of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.relations.samples_alone import difference
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.observe.compat.trees import tree_leaves

PADDING = ProbeRule(
    "EX117",
    "padding-counts",
    Severity.HIGH,
    "wrong result",
    Text("the result depends on how much padding a batch has", "结果取决于批中填充的多少"),
    Text(
        "a mean, a last state or a sum is taken over padding too: a sample gets another result beside longer ones",
        "均值、末状态或求和把填充也算在内：样本与更长的样本同批时会得到不同结果",
    ),
    Text("use the lengths or the mask that are there", "请使用已有的长度或掩码"),
)
RULES = (PADDING,)
_MORE = 3
_TOLERANCE = 1e-3
"""Relative to the largest value, in float32; sums over more zeros differ by rounding only."""


@dataclass(frozen=True, slots=True)
class Padded:
    """What a call says of its padding."""

    lengths: torch.Tensor
    batch: int
    width: int


def examine(subject: Subject) -> Examined:
    broken: dict[Place, tuple[Call, float]] = {}
    decided = False
    for call in subject.run.calls:
        if any(isinstance(item, torch.optim.Optimizer) for item in call.arguments.values()):
            continue
        size = _change(subject, call)
        if size is None:
            continue
        decided = True
        if size > _TOLERANCE:
            broken[call.place] = call, size
    if not decided:
        return NOTHING_TO_LOOK_AT
    calls = [call for call, _ in broken.values()]
    shown = [
        _shown(call, size)
        for call, size in broken.values()
        if not any(_may_call(call, other) for other in calls)
    ]
    return Examined(tuple(shown), decided=True)


def _may_call(one: Call, other: Call) -> bool:
    """Whether the second may be made inside the first, which then only passes its result on."""
    if one.place == other.place:
        return False
    if other.code.co_name in one.code.co_names:
        return True
    owner = other.arguments.get("self")
    if not isinstance(owner, nn.Module):
        return False
    kinds = {
        type(inner)
        for item in one.arguments.values()
        if isinstance(item, nn.Module)
        for inner in item.modules()
    }
    return type(owner) in kinds


def _change(subject: Subject, call: Call) -> float | None:
    """By how much results change with more padding; None where that cannot be asked."""
    padded = find_padding(call)
    if padded is None:
        return None
    plain = _run(subject, call, padded, 0, seed=0)
    again = _run(subject, call, padded, 0, seed=1)
    wide = _run(subject, call, padded, _MORE, seed=0)
    moved = _run(subject, call, padded, 0, seed=0, is_moved=True)
    if not plain or len(plain) != len(wide) or len(again) != len(plain):
        return None
    if max(map(difference, plain, again)) > _TOLERANCE:
        return None  # it draws random numbers
    if len(moved) == len(plain) and not any(map(difference, plain, moved)):
        return None  # it does not depend on what is there: a constant is right with any padding
    sizes = [
        size
        for one, other in zip(plain, wide, strict=True)
        if (size := _compare(one, other, padded)) is not None
    ]
    return max(sizes, default=None)


def _compare(one: torch.Tensor, other: torch.Tensor, padded: Padded) -> float | None:
    """Only what belongs to real positions; None for shapes that say nothing."""
    if one.shape == other.shape:
        return difference(one, other)
    wide = (padded.batch, padded.width + _MORE)
    if one.dim() < 2 or tuple(other.shape[:2]) != wide:
        return None
    real = torch.arange(padded.width)[None, :] < padded.lengths[:, None]
    return difference(one[real], other[:, : padded.width][real])


def _run(
    subject: Subject, call: Call, padded: Padded, more: int, seed: int, is_moved: bool = False
) -> list[torch.Tensor]:
    """Results with more padding; `is_moved`: with other values at the first place of each row."""
    given = call.copy()
    if given is None:
        return []
    arguments = {name: _widened(value, padded, more) for name, value in given.items()}
    if is_moved:
        arguments = {name: _moved(value, padded) for name, value in arguments.items()}
    for value in arguments.values():
        if isinstance(value, nn.Module):
            value.eval()
    with torch.no_grad():
        done = subject.replay(call, arguments, seed)
    if done.error or done.trained:
        return []
    leaves = tree_leaves([done.value, *_fields(done.value)])
    found = [torch.tensor(item) if isinstance(item, float) else item for item in leaves]
    return [item.detach() for item in found if torch.is_tensor(item) and item.is_floating_point()]


def _fields(value: Any) -> list[Any]:
    known = isinstance(value, nn.Module | torch.Tensor | type) or not hasattr(value, "__dict__")
    return [] if known else list(vars(value).values())


def _moved(value: Any, padded: Padded) -> Any:
    if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.dtype is torch.bool:
        return value
    if tuple(value.shape[:2]) != (padded.batch, padded.width):
        return value
    changed = value.clone()
    first = changed[:, 0]
    changed[:, 0] = -first if value.is_floating_point() else first.roll(1, 0)
    return changed


def _widened(value: Any, padded: Padded, more: int) -> Any:
    if isinstance(value, torch.Tensor):
        return _wide(value, padded, more)
    if isinstance(value, dict):
        return {key: _widened(item, padded, more) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_widened(item, padded, more) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_widened(item, padded, more) for item in value))
    if _fields(value) and not isinstance(value, torch.optim.Optimizer):
        changed = copy.copy(value)
        for name, item in vars(value).items():
            if isinstance(item, torch.Tensor):
                object.__setattr__(changed, name, _wide(item, padded, more))
        return changed
    return value


def _wide(item: torch.Tensor, padded: Padded, more: int) -> torch.Tensor:
    if not more or item.dim() < 2 or tuple(item.shape[:2]) != (padded.batch, padded.width):
        return item
    short = int(padded.lengths.argmin())
    column = item[short, -1]
    rows = column.expand(padded.batch, more, *item.shape[2:])
    return torch.cat([item, rows], dim=1)


def find_padding(call: Call) -> Padded | None:
    """Lengths, a mask or the number of an embedding for padding, beside tensors whose second axis they speak of."""
    values = [value for name, value in call.arguments.items() if name != "self"]
    tensors = [
        item
        for value in values
        for item in tree_leaves([value, *_fields(value)])
        if torch.is_tensor(item)
    ]
    pads = sorted(set(_padding_ids(values + [call.arguments.get("self")])))
    for item in tensors:
        for lengths in (*_lengths(item), *_lengths_by_ids(item, pads)):
            padded = _checked(lengths, tensors)
            if padded is not None:
                return padded
    return None


def _padding_ids(values: list[Any]) -> Iterator[int]:
    """What embeddings call padding."""
    for value in values:
        for module in value.modules() if isinstance(value, nn.Module) else ():
            if (
                isinstance(module, nn.Embedding | nn.EmbeddingBag)
                and module.padding_idx is not None
            ):
                yield module.padding_idx


def _lengths_by_ids(item: torch.Tensor, pads: list[int]) -> Iterator[torch.Tensor]:
    """Of rows of numbers that end in the one for padding."""
    if item.dim() == 2 and not item.is_floating_point() and item.dtype is not torch.bool:
        for pad in pads:
            kept = item != pad
            lengths = kept.sum(1)
            if torch.equal(kept, torch.arange(item.shape[1])[None, :] < lengths[:, None]):
                yield lengths


def _lengths(item: torch.Tensor) -> Iterator[torch.Tensor]:
    whole = not item.is_floating_point() and item.dtype is not torch.bool
    if item.dim() == 1 and whole and len(item) > 1:
        yield item
    if item.dim() == 2 and item.dtype is torch.bool:
        for kept in (item, ~item):
            lengths = kept.sum(1)
            if torch.equal(kept, torch.arange(item.shape[1])[None, :] < lengths[:, None]):
                yield lengths


def _checked(lengths: torch.Tensor, tensors: list[torch.Tensor]) -> Padded | None:
    """The longest fills its row, a shorter one is padded with one value in every tensor."""
    batch, longest = len(lengths), int(lengths.max())
    if int(lengths.min()) < 1 or int(lengths.min()) == longest or batch == longest:
        return None
    wide = [
        item for item in tensors if item.dim() > 1 and tuple(item.shape[:2]) == (batch, longest)
    ]
    padding = torch.arange(longest)[None, :] >= lengths[:, None]
    values = [item[padding].flatten() for item in wide if item.dtype is not torch.bool]
    if not values or any(bool((item != item[0]).any()) for item in values):
        return None
    return Padded(lengths.clone(), batch, longest)


def _shown(call: Call, size: float) -> Shown:
    return Shown(
        PADDING,
        call.place,
        Text(
            "three more columns of padding change the result of `{name}` by {size} of its largest value",
            "多加三列填充会使 `{name}` 的结果变化最大值的 {size}",
        ),
        {"name": call.name, "size": f"{size:.2%}"},
        (number("change", "变化", 100 * size, "%", ON_A_COPY), expected(0.0, "%", ON_A_COPY)),
    )
