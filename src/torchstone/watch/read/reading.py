"""What a reader gives: one row of counts for every gradient, and how torch alone would count."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.observe.compat.tensors import foreach_norm
from torchstone.watch.read.fused import LEVELS, ROW, STEP, Pinned

WIDTH = 32
"""Values of each tensor that are sampled; a smaller tensor gives all of them."""
KINDS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Query:
    """What the counts are for: exponents (biased, fp32) to count below, and overflow limits."""

    levels: NDArray[np.uint8]
    limits: NDArray[np.float64]
    histogram: bool = False
    samples: bool = True
    pinned: tuple[Pinned, Pinned] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pinned", (Pinned(self.levels), Pinned(self.limits)))


@dataclass(slots=True)
class Reading:
    """What one read gave; rows of parameters without a gradient are all zero."""

    update: int
    rows: NDArray[np.void]
    present: NDArray[np.bool_]
    counted: bool = True
    """False when only norms were read this time."""
    samples: NDArray[np.float32] | None = None
    histograms: NDArray[np.int64] | None = None
    squares: float | None = None
    """Sum over all values, NaN where one is not finite; None where only the rows say it."""

    @property
    def whole(self) -> float:
        """Sum of the squares of all values; NaN where one is not finite."""
        if self.squares is None:
            bad = (self.rows["nan"] + self.rows["infinite"]).any()
            self.squares = math.nan if bad else float(self.rows["sum_of_squares"].sum())
        return self.squares

    def keep_samples(
        self, samples: NDArray[np.float32], histograms: NDArray[np.int64] | None
    ) -> None:
        """What was read apart from the rows, and has just arrived."""
        self.samples, self.histograms = samples, histograms

    @classmethod
    def empty(cls, update: int) -> Reading:
        """Stands where nothing was read."""
        return cls(update, np.zeros(0, ROW), np.zeros(0, np.bool_), False)


def torch_rows(gradients: Sequence[Tensor | None], query: Query) -> tuple[NDArray[np.void], NDArray[np.int64]]:  # fmt: skip
    """The same counts as the C pass, with torch alone: exact, and many times slower."""
    rows = np.zeros(len(gradients), ROW)
    histograms = np.zeros((len(gradients), 256), np.int64)
    for row, histogram, gradient, limit in zip(
        rows, histograms, gradients, query.limits, strict=True
    ):
        if gradient is not None and gradient.numel():
            wide = gradient.detach().to(torch.float32).flatten().abs()
            _fill(row, histogram, wide, query, float(limit))
    return rows, histograms


def _fill(row: np.void, histogram: NDArray[np.int64], wide: Tensor, query: Query, limit: float) -> None:  # fmt: skip
    finite = wide[wide.isfinite()].double()
    row["sum_of_squares"] = float(finite.square().sum())
    row["largest"] = float(finite.max()) if finite.numel() else 0.0
    row["nan"] = int(wide.isnan().sum())
    row["infinite"] = int(wide.isinf().sum())
    row["zero"] = int((wide == 0).sum())
    row["beyond"] = int((wide.double() >= limit).sum())
    counts = torch.bincount((wide.view(torch.int32) >> 23).long(), minlength=256).numpy()
    histogram[:] = counts
    row["below"] = [int(counts[: int(level)].sum()) for level in query.levels]


def torch_samples(tensors: Sequence[Tensor | None]) -> NDArray[np.float32]:
    """Evenly spread values of every tensor, chosen as the C pass chooses them."""
    out = torch.zeros(len(tensors), WIDTH)
    where = [i for i, item in enumerate(tensors) if item is not None and item.numel()]
    taken = [spread(tensors[i]) for i in where]  # type: ignore[arg-type]
    if taken:
        flat = torch.cat([item.to(torch.float32) for item in taken]).cpu()
        for i, part in zip(where, flat.split([len(item) for item in taken]), strict=True):
            out[i, : len(part)] = part
    return out.numpy()


def spread(tensor: Tensor) -> Tensor:
    flat = tensor.detach().flatten()
    count = min(WIDTH, len(flat))
    return flat[:: len(flat) // count][:count]


def numpy_step(
    sizes: NDArray[np.int64], before: NDArray[np.float32], after: NDArray[np.float32],
    gradients: NDArray[np.float32], last: NDArray[np.float32],
) -> NDArray[np.void]:  # fmt: skip
    """What a step did to the sampled weights, as the C function says it."""
    steps = np.zeros(len(sizes), STEP)
    there = np.arange(before.shape[1])[None, :] < sizes[:, None]
    bits = after.view(np.uint32)
    same = before.view(np.uint32) == bits
    pushed = (gradients != 0) & there
    with np.errstate(all="ignore"):
        steps["update_squares"] = ((after.astype(float) - before) ** 2 * there).sum(1)
        steps["weight_squares"] = (after.astype(float) ** 2 * there).sum(1)
        moved, pushes = after.astype(float) - before, gradients.astype(float) * there
        old_pushes, old_moved = np.split(last, 2)
        for name, product in (
            ("gradient_squares", pushes * pushes), ("along", pushes * moved),
            ("again", pushes * old_pushes), ("straight", moved * old_moved),
        ):  # fmt: skip
            steps[name] = (product * there).sum(1)
        last[:] = np.concatenate([pushes, (after - before) * there])
    steps["changed"] = (~same & there).sum(1)
    steps["pushed"] = pushed.sum(1)
    steps["absorbed"] = (pushed & same).sum(1)
    steps["not_finite"] = (((bits & 0x7F800000) == 0x7F800000) & there).sum(1)
    odd = np.arange(1, 2 * before.shape[1], 2, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits.astype(np.uint64) + np.uint64(1)) * (_GOLDEN * odd)
        steps["digest"] = np.where(there, mixed, np.uint64(0)).sum(1)
    return steps


def fill_norms(
    rows: NDArray[np.void], present: NDArray[np.bool_], norms: NDArray[np.float32],
    largest: NDArray[np.float32],
) -> None:  # fmt: skip
    bad = ~np.isfinite(norms) & present
    fine = present & ~bad
    rows["sum_of_squares"][fine] = norms[fine].astype(float) ** 2
    rows["largest"][fine] = largest[fine]
    rows["nan"] = np.isnan(norms) & present
    rows["infinite"] = np.isinf(norms) & present


def norms_only(rows: NDArray[np.void], present: NDArray[np.bool_], norms: Sequence[Tensor]) -> None:
    values = np.zeros(len(rows), np.float32)
    if norms:
        values[present] = torch.stack([item.float() for item in norms]).numpy()
    fill_norms(rows, present, values, values)


def all_finite(gradients: Sequence[Tensor | None]) -> bool:
    """No value is NaN or infinite; False also where only their norm is beyond what fp32 holds."""
    dense = [plain(g.detach()) for g in gradients if g is not None and g.layout == torch.strided]
    dense = [g for g in dense if g.numel() and not g.is_meta]
    by_device: dict[torch.device, list[Tensor]] = {}
    for gradient in dense:
        by_device.setdefault(gradient.device, []).append(gradient)
    return all(
        bool(torch.stack([norm.float() for norm in foreach_norm(some)]).isfinite().all())
        for some in by_device.values()
    )


def plain(tensor: Tensor) -> Tensor:
    """The dense local memory behind a parameter or a gradient: shard, real view, contiguous."""
    local = getattr(tensor, "to_local", None)
    if local is not None:
        tensor = local()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.detach())
    if tensor.is_neg():
        tensor = tensor.detach().resolve_neg()
    if tensor.dtype not in KINDS:
        tensor = tensor.detach().float()
    return tensor if tensor.is_contiguous() else _in_order(tensor.detach())


def _in_order(tensor: Tensor) -> Tensor:
    """Dense memory is read in its own order; only memory with holes is copied."""
    with contextlib.suppress(RuntimeError):
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        moved = tensor.permute(order)
        if moved.is_contiguous():
            return moved
    return tensor.contiguous()


def size_of(tensor: Tensor) -> int:
    return plain(tensor.detach()).numel()


__all__ = ["KINDS", "LEVELS", "WIDTH", "Query", "Reading", "plain"]
