"""Whether two results are the same to a caller: types, dtypes, shapes, layout and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchstone.dataflow.migration.specification import Case


def difference(expected: Any, got: Any, case: Case) -> str:
    """Empty if they are the same within the case's tolerance, else what differs."""
    if isinstance(expected, tuple | list):
        if type(expected) is not type(got) or len(expected) != len(got):
            return f"{_kind(got)} instead of {_kind(expected)}"
        parts = (difference(one, other, case) for one, other in zip(expected, got, strict=True))
        return next((part for part in parts if part), "")
    if type(expected) is not type(got):
        return f"{_kind(got)} instead of {_kind(expected)}"
    if isinstance(expected, np.ndarray | np.generic):
        return _arrays(np.asarray(expected), np.asarray(got), case)
    if isinstance(expected, torch.Tensor):
        return _tensors(expected, got, case)
    if hasattr(expected, "tobytes") and hasattr(expected, "mode"):
        return _pictures(expected, got, case)
    if isinstance(expected, float):
        return _arrays(np.asarray(expected), np.asarray(got), case)
    return "" if expected == got else f"{got!r:.60} instead of {expected!r:.60}"


def largest_error(expected: Any, got: Any) -> float:
    """The largest absolute difference between the numbers of two results of one form."""
    if isinstance(expected, tuple | list):
        return max(map(largest_error, expected, got), default=0.0)
    one, other = np.asarray(expected), np.asarray(got)
    if one.dtype.kind not in "biufc" or one.shape != other.shape or not one.size:
        return 0.0
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        gap = np.abs(one.astype(wide) - other.astype(wide))
    same = (one == other) | (_is_nan(one) & _is_nan(other))
    return float(np.where(same, 0.0, gap).max())


def _arrays(one: np.ndarray, other: np.ndarray, case: Case) -> str:
    if one.dtype != other.dtype:
        return f"dtype {other.dtype} instead of {one.dtype}"
    if one.shape != other.shape:
        return f"shape {other.shape} instead of {one.shape}"
    if one.flags.c_contiguous and not other.flags.c_contiguous:
        return "another memory layout"
    if one.dtype.kind not in "biufc":
        return "" if bool((one == other).all()) else "other values"
    same = (one == other) | (_is_nan(one) & _is_nan(other))
    if bool(same.all()):
        return ""
    gap = largest_error(one, other)
    share = float(1 - same.mean())
    finite = np.abs(one[np.isfinite(one)]) if one.dtype.kind in "fc" else np.abs(one.astype(float))
    size = float(finite.max()) if case.relative and finite.size else 0.0
    if gap <= case.tolerance + case.relative * size:
        return ""
    return f"values differ by up to {gap:.6g} ({share:.2%} of them)"


def _is_nan(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "fc":
        return np.asarray(np.isnan(values))
    return np.zeros(values.shape, bool)


def _tensors(one: torch.Tensor, other: torch.Tensor, case: Case) -> str:
    if one.dtype != other.dtype or one.device != other.device:
        return f"{other.dtype} on {other.device} instead of {one.dtype} on {one.device}"
    if one.dtype == torch.bfloat16:
        one, other = one.float(), other.float()
    return _arrays(one.detach().cpu().numpy(), other.detach().cpu().numpy(), case)


def _pictures(one: Any, other: Any, case: Case) -> str:
    if one.mode != other.mode or one.size != other.size:
        return f"{other.mode} {other.size} instead of {one.mode} {one.size}"
    return _arrays(np.asarray(one), np.asarray(other), case)


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
