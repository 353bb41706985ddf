"""Sums, means, extremes and statistics with numpy's definitions.

`std` and `var` divide by n (ddof 0), `median` is the mean of the two middle values, sums of uint8
are uint64, means of integers float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.numpy._arrays import (
    not_an_array,
    not_default,
    random_array,
    random_axis,
    rounding,
)
from torchstone.dataflow.migration.moves.numpy._elementwise import numpy_dtype, torch_dtype
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call, refuse

NONE: Any = np._NoValue
Reduced = tuple[Tensor, np.dtype[Any]]


def axes_of(a: Tensor, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(a.ndim))
    return tuple(
        int(item) % a.ndim for item in (axis if isinstance(axis, tuple | list) else (axis,))
    )


def _verdict(name: str, a: Any, keepdims: Any, **options: Any) -> Case | Refusal:
    if refused := not_an_array(a) or not_default(**options):
        return refused
    if a.dtype == np.float16 or np.dtype(a.dtype).kind == "c":
        return refuse(f"{a.dtype} is summed in another precision", f"{a.dtype} 的求和精度不同")
    made = _made_by(name, np.dtype(a.dtype))
    return Case(f"{a.dtype}", _lost(name, a), 8 * rounding(made) if made.kind == "f" else 0.0)


def _lost(name: str, a: Any) -> float:
    """What rounding may add to a sum, by the size of its terms: they may cancel each other."""
    if (
        name not in ("sum", "mean")
        or np.dtype(a.dtype).kind != "f"
        or not isinstance(a, np.ndarray)
    ):
        return 0.0
    largest = (
        max(abs(float(np.nanmax(a))), abs(float(np.nanmin(a)))) if not np.isnan(a).all() else 0.0
    )
    lost = rounding(a.dtype) * largest * (a.size if name == "sum" else 1)
    return lost if np.isfinite(lost) else 0.0


def _made_by(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of numpy's result."""
    made: np.dtype[Any] = getattr(np, name)(np.ones(2, dtype)).dtype
    return made


def _kept(keepdims: Any) -> bool:
    return keepdims is not NONE and bool(keepdims)


def _sum(a: Tensor, axes: tuple[int, ...], keep: bool, wide: torch.dtype) -> Tensor:
    return a.sum(axes, keepdim=keep, dtype=wide)


def _mean(a: Tensor, axes: tuple[int, ...], keep: bool, wide: torch.dtype) -> Tensor:
    return a.to(wide).mean(axes, keepdim=keep)


def _std(a: Tensor, axes: tuple[int, ...], keep: bool, wide: torch.dtype) -> Tensor:
    return _var(a, axes, keep, wide).sqrt()


def _var(a: Tensor, axes: tuple[int, ...], keep: bool, wide: torch.dtype) -> Tensor:
    """By numpy's steps, not by torch's running mean: they overflow where numpy's do."""
    values = a.to(wide)
    apart = values - values.mean(axes, keepdim=True)
    return (apart * apart).mean(axes, keepdim=keep)


def _reduction(name: str, compute: Callable[..., Tensor]) -> OpSpec:
    def case(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = NONE,
        initial: Any = NONE,
        where: Any = NONE,
    ) -> Case | Refusal:
        return _verdict(name, a, keepdims, dtype=dtype, out=out, initial=initial, where=where)

    def backend(a: Tensor, axis: Any, keepdims: Any, **_: Any) -> Reduced:
        made = _made_by(name, numpy_dtype(a.dtype))
        wide = torch.int64 if made.kind in "ui" else torch_dtype(made)
        return compute(a, axes_of(a, axis), _kept(keepdims), wide), made

    return OpSpec(f"numpy.{name}", case, sample, backend, {"a": "array"}, "array_as")


def _spread(name: str, compute: Callable[..., Tensor]) -> OpSpec:
    def case(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = NONE,
        where: Any = NONE,
        mean: Any = NONE,
        correction: Any = NONE,
    ) -> Case | Refusal:
        if ddof != 0:
            return refuse(f"ddof = {ddof}", f"ddof = {ddof}")
        return _verdict(
            name, a, keepdims, dtype=dtype, out=out, where=where, mean=mean, correction=correction
        )

    def backend(a: Tensor, axis: Any, keepdims: Any, **_: Any) -> Reduced:
        made = _made_by(name, numpy_dtype(a.dtype))
        return compute(a, axes_of(a, axis), _kept(keepdims), torch_dtype(made)), made

    return OpSpec(f"numpy.{name}", case, sample, backend, {"a": "array"}, "array_as")


def _extreme(name: str, compute: Callable[..., Tensor]) -> OpSpec:
    def case(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NONE,
        initial: Any = NONE,
        where: Any = NONE,
    ) -> Case | Refusal:
        verdict = _verdict(name, a, keepdims, out=out, initial=initial, where=where)
        return Case(verdict.name) if isinstance(verdict, Case) else verdict

    def backend(a: Tensor, axis: Any, keepdims: Any, **_: Any) -> Tensor:
        return compute(a, axes_of(a, axis), _kept(keepdims))

    return OpSpec(f"numpy.{name}", case, sample, backend, {"a": "array"}, "array")


def _position(name: str, compute: Callable[..., Tensor]) -> OpSpec:
    def case(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NONE) -> Case | Refusal:
        if refused := not_an_array(a) or not_default(out=out, keepdims=keepdims):
            return refused
        return Case("any")

    def backend(a: Tensor, axis: Any, **_: Any) -> Tensor:
        flat, along = (a.flatten(), 0) if axis is None else (a, axis)
        values = flat.to(torch.int64) if flat.dtype in (torch.bool, torch.uint8) else flat
        best = compute(values, along)
        # numpy gives the first of equals
        return (values == best).to(torch.uint8).argmax(along)

    return OpSpec(f"numpy.{name}", case, sample, backend, {"a": "array"}, "array")


def median_case(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Case | Refusal:
    if isinstance(axis, tuple | list) or overwrite_input:
        return refuse("several axes, or the input is overwritten", "多个轴，或会覆盖输入")
    return _verdict("median", a, keepdims, out=out)


def median(a: Tensor, axis: Any, keepdims: bool, **_: Any) -> Reduced:
    """The mean of the two middle values."""
    made = _made_by("median", numpy_dtype(a.dtype))
    values = (a.flatten() if axis is None else a.movedim(axis, -1)).to(torch_dtype(made))
    ordered = values.sort(-1).values
    count = ordered.shape[-1]
    low, high = ordered[..., (count - 1) // 2], ordered[..., count // 2]
    middle = (low + high) / 2 if count % 2 == 0 else low
    middle = torch.where(values.isnan().any(-1), torch.nan, middle)
    if keepdims:
        middle = middle.reshape((1,) * a.ndim) if axis is None else middle.unsqueeze(axis)
    return middle, made


def percentile_case(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Case | Refusal:
    if not isinstance(q, int | float) or isinstance(axis, tuple) or keepdims or overwrite_input:
        return refuse("several percentiles or axes", "多个百分位或多个轴")
    if method != "linear":
        return refuse(f"method = {method!r}", f"method = {method!r}")
    if np.dtype(getattr(a, "dtype", "O")) == np.float32:
        return refuse(
            "float32 percentiles are float64 in part", "float32 百分位部分以 float64 计算"
        )
    return _verdict("median", a, False, out=out, weights=weights)


def percentile(a: Tensor, q: Any, axis: Any, **_: Any) -> Reduced:
    return _quantile(a, q / 100, axis)


def quantile(a: Tensor, q: Any, axis: Any, **_: Any) -> Reduced:
    return _quantile(a, q, axis)


def _quantile(a: Tensor, q: float, axis: Any) -> Reduced:
    values = (a.flatten() if axis is None else a.movedim(axis, -1)).double()
    ordered = values.sort(-1).values
    place = q * (ordered.shape[-1] - 1)
    low = min(int(place), ordered.shape[-1] - 1)
    high = min(low + 1, ordered.shape[-1] - 1)
    part = place - low
    below, above = ordered[..., low], ordered[..., high]
    # numpy starts from the nearer side
    result = below + (above - below) * part if part < 0.5 else above - (above - below) * (1 - part)
    return result, np.dtype(np.float64)


def cumsum_case(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Case | Refusal:
    return _verdict("sum", a, False, dtype=dtype, out=out)


def cumsum(a: Tensor, axis: Any, **_: Any) -> Reduced:
    made = _made_by("sum", numpy_dtype(a.dtype))
    wide = torch.int64 if made.kind in "ui" else torch_dtype(made)
    return (a.flatten() if axis is None else a).cumsum(
        0 if axis is None else axis, dtype=wide
    ), made


def sample(rng: np.random.Generator) -> Call:
    array = random_array(rng)
    if rng.integers(3) == 0:
        return call(array)
    return call(array, random_axis(rng, array))


def median_sample(rng: np.random.Generator) -> Call:
    array = random_array(rng)
    return call(array, axis=random_axis(rng, array), keepdims=bool(rng.integers(2)))


def percentile_sample(rng: np.random.Generator) -> Call:
    array = random_array(rng, "uint8 float64")
    return call(array, float(rng.integers(0, 101)), random_axis(rng, array))


def quantile_sample(rng: np.random.Generator) -> Call:
    array = random_array(rng, "uint8 float64")
    return call(array, float(rng.uniform(0, 1)), random_axis(rng, array))


_A = {"a": "array"}
MOVES = (
    _reduction("sum", _sum),
    _reduction("mean", _mean),
    _spread("std", _std),
    _spread("var", _var),
    _extreme("max", lambda a, axes, keep: a.amax(axes, keepdim=keep)),
    _extreme("min", lambda a, axes, keep: a.amin(axes, keepdim=keep)),
    _position("argmax", lambda a, axis: a.amax(axis, keepdim=True)),
    _position("argmin", lambda a, axis: a.amin(axis, keepdim=True)),
    OpSpec("numpy.median", median_case, median_sample, median, _A, "array_as"),
    OpSpec("numpy.percentile", percentile_case, percentile_sample, percentile, _A, "array_as"),
    OpSpec("numpy.quantile", percentile_case, quantile_sample, quantile, _A, "array_as"),
    OpSpec("numpy.cumsum", cumsum_case, sample, cumsum, _A, "array_as"),
)
