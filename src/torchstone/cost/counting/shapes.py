"""Output shapes of operators whose own meta kernel refuses what the operator can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _grouped(args: Any, kwargs: Any) -> torch.Tensor:
    """A grouped product: the kernel accepts more number formats than its meta form admits."""
    left, right = args[0], args[1]
    groups = args[2] if len(args) > 2 else kwargs.get("offs")
    dtype = kwargs.get("out_dtype") or (args[4] if len(args) > 4 else None) or left.dtype
    if left.dim() == 2 and right.dim() == 2:
        shape: tuple[int, ...] = (groups.shape[0], left.shape[0], right.shape[1])
    elif left.dim() == 2:
        shape = (left.shape[0], right.shape[2])
    elif right.dim() == 2:
        shape = (left.shape[1], right.shape[1])
    else:
        shape = (left.shape[0], left.shape[1], right.shape[2])
    return torch.empty(shape, dtype=dtype, device="meta")


def _least_squares(args: Any, _: Any) -> tuple[torch.Tensor, ...]:
    """Least squares has no meta kernel: solution, residuals, rank and singular values, as the
    driver for full rank gives them."""
    left, right = args[0], args[1]
    vector = left.dim() == right.dim() + 1
    batch, columns = left.shape[:-2], right.shape[-1:] if not vector else ()
    solution = (*batch, left.shape[-1], *columns)
    tall = left.shape[-2] > left.shape[-1]
    residuals = (*batch, *columns) if tall else (0,)
    made = [torch.empty(shape, dtype=left.dtype, device="meta") for shape in (solution, residuals)]
    rank = torch.empty(0, dtype=torch.long, device="meta")
    return (*made, rank, torch.empty(0, dtype=left.dtype, device="meta"))


SHAPES: dict[str, Callable[[Any, Any], Any]] = {
    "aten._grouped_mm": _grouped,
    "aten.linalg_lstsq": _least_squares,
}

ONE_FORMAT = frozenset(
    f"aten.{name}"
    for name in "mm bmm addmm baddbmm addbmm mv addmv dot vdot linear convolution".split()
)
"""Products whose operands must have one number format; their meta kernels do not all check it."""


def check_formats(name: str, args: Any) -> None:
    """Raise what torch raises on a device when the operands of a product do not match."""
    found = [item.dtype for item in args if isinstance(item, torch.Tensor) and item.dim()]
    if len(set(found)) > 1:
        said = " and ".join(dict.fromkeys(str(item).removeprefix("torch.") for item in found))
        raise RuntimeError(f"{name}: expected operands of one number format, got {said}")
