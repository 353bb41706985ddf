"""Gradients of several ranks against those of one process, and the first function where they part."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

import torch

from torchstone.conductor.experiments.against_one.tape import Return, Tape
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

DIFFERENT = ProbeRule(
    "EX201",
    "ranks-differ-from-one-process",
    Severity.HIGH,
    "wrong result",
    Text(
        "several ranks compute other gradients than one process with the same data",
        "多个 rank 算出的梯度与单进程在同样数据上的梯度不同",
    ),
    Text(
        "the result depends on the number of ranks: something is missing, counted twice, or divided by the wrong count",
        "结果取决于 rank 数：有遗漏、重复计入，或除以了错误的数量",
    ),
    Text(
        "look at what this function does with the other ranks' share",
        "检查该函数如何处理其他 rank 的部分",
    ),
)
FACTOR = ProbeRule(
    "EX202",
    "gradients-scaled-by-ranks",
    Severity.MEDIUM,
    "wrong result",
    Text(
        "all gradients on the ranks are a multiple of those of one process",
        "各 rank 的梯度都是单进程梯度的同一倍数",
    ),
    Text(
        "the learning rate means something else with every number of ranks",
        "学习率的含义随 rank 数而变",
    ),
    Text(
        "divide the summed gradients by the number of ranks, or the loss by the global count",
        "将求和后的梯度除以 rank 数，或将损失除以全局数量",
    ),
)
RULES = (DIFFERENT, FACTOR)
_TOLERANCE = 2e-2
"""Relative norm, float32: sums in another order stay below 1e-4; balance losses, products of means, below this."""
_NOTHING = 1e-5
"""Of the largest gradient's norm."""
_ALIKE = 0.99
"""Cosine above which a difference is a matter of weights between samples, as with means over unequal counts."""
_RETURN_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Difference:
    """One parameter whose gradient differs."""

    place: int
    relative: float
    cosine: float
    factor: float


def compare_tapes(one: Tape, ranks: list[Tape]) -> tuple[Shown, ...] | str:
    """What is broken; or why nothing could be decided."""
    if not one.gradients or any(not tape.gradients for tape in ranks):
        ended = next((tape.ended for tape in (*ranks, one) if not tape.gradients), "")
        return f"no optimizer step was reached ({ended or 'the program ended'})"
    if any(tape.own_statistics for tape in ranks):
        return "batch statistics are taken on each rank alone"
    differences: list[Difference] = []
    compared = 0
    largest = max(
        (float(item.norm()) for item in one.gradients[0] if item is not None), default=0.0
    )
    for place, wanted in enumerate(one.gradients[0]):
        parts = [tape.gradients[0][place] for tape in ranks if place < len(tape.gradients[0])]
        if wanted is None or len(parts) != len(ranks):
            continue
        shares = [_zeros(item, wanted) for item in parts]
        if max(float(item.norm()) for item in (wanted, *shares)) <= _NOTHING * largest:
            continue  # what cancels out leaves rounding, which agrees with nothing
        compared += 1
        found = _difference(place, wanted, shares)
        if found is not None:
            differences.append(found)
    if not compared:
        return "no gradient could be compared"
    return _shown(differences, compared, one, ranks) if differences else ()


def _zeros(item: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(like) if item is None else item


def _difference(place: int, wanted: torch.Tensor, parts: list[torch.Tensor]) -> Difference | None:
    """None where every rank has the whole gradient, or all together have it in shards."""
    if parts[0].shape != wanted.shape:
        joined = _shards(parts, wanted.shape)
        return None if joined is None else _measure(place, wanted, joined)
    return max(
        (_measure(place, wanted, item) for item in parts),
        key=lambda item: item.relative if item else 0.0,
    )


def _shards(parts: list[torch.Tensor], shape: torch.Size) -> torch.Tensor | None:
    for axis in range(len(shape)):
        if sum(item.shape[axis] for item in parts) == shape[axis]:
            joined = torch.cat(parts, axis)
            if joined.shape == shape:
                return joined
    return None


def _measure(place: int, wanted: torch.Tensor, found: torch.Tensor) -> Difference | None:
    norm, other = float(wanted.norm()), float(found.norm())
    relative = float((found - wanted).norm()) / max(norm, 1e-12)
    if relative <= _TOLERANCE:
        return None
    cosine = float((found * wanted).sum()) / max(norm * other, 1e-24)
    return Difference(place, relative, cosine, other / max(norm, 1e-12))


def _shown(
    differences: list[Difference], compared: int, one: Tape, ranks: list[Tape]
) -> tuple[Shown, ...]:
    worst = max(differences, key=lambda item: item.relative)
    factors = [item.factor for item in differences]
    middle = statistics.median(factors)
    uniform = (
        len(differences) == compared
        and all(item.cosine > 0.999 for item in differences)
        and all(math.isclose(item, middle, rel_tol=_TOLERANCE) for item in factors)
    )
    numbers = (
        number("largest relative difference", "最大相对差异", worst.relative, "", IN_THE_RUN),
        number("its cosine", "其余弦", worst.cosine, "", IN_THE_RUN),
    )
    place = first_difference(one, ranks) or Place(*ranks[0].step_at)
    args = {
        "count": str(len(differences)),
        "total": str(compared),
        "ranks": str(len(ranks)),
        "relative": f"{worst.relative:.0%}",
        "factor": f"{middle:.3g}",
    }
    if uniform:
        return (
            Shown(
                FACTOR,
                place,
                Text(
                    "on {ranks} ranks every gradient is {factor} times that of one process",
                    "在 {ranks} 个 rank 上，每个梯度都是单进程的 {factor} 倍",
                ),
                args,
                numbers,
            ),
        )
    alike = all(item.cosine > _ALIKE for item in differences)
    return (
        Shown(
            DIFFERENT,
            place,
            Text(
                "on {ranks} ranks {count} of {total} gradients differ from those of one process with the same data, by up "
                "to {relative}",
                "在 {ranks} 个 rank 上，{total} 个梯度中有 {count} 个与同样数据的单进程不同，最大差 {relative}",
            ),
            args,
            numbers,
            severity=Severity.MEDIUM if alike else None,
        ),
    )


def first_difference(
    one: Tape, ranks: list[Tape], tolerance: float = _RETURN_TOLERANCE
) -> Place | None:
    """The first function, in the order of one process, whose result no join of the ranks' results gives."""
    by_key = [{item.key: item for item in tape.returns} for tape in ranks]
    for item in one.returns:
        parts = [rows[item.key].value for rows in by_key if item.key in rows]
        if len(parts) == len(ranks) and not _agrees(item, parts, tolerance):
            return item.place
    return None


def _agrees(item: Return, parts: list[torch.Tensor], tolerance: float) -> bool:
    """Equal on every rank, side by side along an axis, or the mean or the sum of what the ranks have."""
    wanted = item.value
    candidates = []
    if parts[0].shape == wanted.shape:
        candidates += [parts[0], sum(parts) / len(parts), sum(parts)]
    for axis in range(wanted.dim()):
        if all(part.dim() == wanted.dim() for part in parts):
            if sum(part.shape[axis] for part in parts) == wanted.shape[axis]:
                joined = torch.cat(parts, axis) if _fits(parts, axis) else None
                candidates += (
                    [joined] if joined is not None and joined.shape == wanted.shape else []
                )
    if not candidates:
        return True  # shapes that say nothing
    size = max(float(wanted.norm()), 1e-6)
    return any(float((torch.as_tensor(c) - wanted).norm()) <= tolerance * size for c in candidates)


def _fits(parts: list[torch.Tensor], axis: int) -> bool:
    def rest(part: torch.Tensor) -> tuple[int, ...]:
        return (*part.shape[:axis], *part.shape[axis + 1 :])

    return all(rest(part) == rest(parts[0]) for part in parts)
