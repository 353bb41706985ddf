"""Joining, padding, rolling, selecting: arrays are made, nothing is rounded.

Functions that only make a view (transpose, reshape, flip) stay: a view costs nothing where the array
is, and a program may write through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import border_index
from torchstone.dataflow.migration.moves.numpy._arrays import (
    array_of,
    not_an_array,
    not_default,
    random_array,
    random_axis,
)
from torchstone.dataflow.migration.moves.numpy._elementwise import numpy_dtype
from torchstone.dataflow.migration.specification import (
    Call,
    Case,
    OpSpec,
    Refusal,
    Sample,
    call,
    refuse,
)

_PADS = {"edge": 1, "symmetric": 2, "wrap": 3, "reflect": 4}


def _same_kind(arrays: Any) -> Case | Refusal:
    if not isinstance(arrays, list | tuple) or not arrays:
        return refuse("no list of arrays", "不是数组列表")
    for item in arrays:
        if refused := not_an_array(item):
            return refused
        if item.dtype != arrays[0].dtype or not item.ndim:
            return refuse(
                "arrays of different dtypes",
                "数组 dtype 不同",
                "convert them to one dtype",
                "请先统一 dtype",
            )
    return Case("any")


def concatenate_case(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = None
) -> Case | Refusal:
    return not_default(out=out, dtype=dtype, casting=casting) or _same_kind(arrays)


def concatenate(arrays: Sequence[Tensor], axis: Any, **_: Any) -> Tensor:
    if axis is None:
        return torch.cat([item.flatten() for item in arrays])
    return torch.cat(list(arrays), axis)


def stack(arrays: Sequence[Tensor], axis: int, **_: Any) -> Tensor:
    return torch.stack(list(arrays), axis)


def pad_case(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Case | Refusal:
    if refused := not_an_array(array):
        return refused
    value = kwargs.get("constant_values", 0)
    if (
        mode not in (*_PADS, "constant")
        or set(kwargs) - {"constant_values"}
        or not isinstance(value, int | float)
    ):
        return refuse(f"mode = {mode!r}", f"mode = {mode!r}")
    widths = _widths(pad_width, array.ndim)
    if mode != "constant" and any(
        max(pair) >= size for pair, size in zip(widths, array.shape, strict=True)
    ):
        return refuse("a border wider than the array", "边框宽于数组")
    return Case(str(mode))


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    pairs = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    return [(int(before), int(after)) for before, after in pairs]


def pad(array: Tensor, pad_width: Any, mode: str, kwargs: dict[str, Any]) -> Tensor:
    widths = _widths(pad_width, array.ndim)
    if mode == "constant":
        shape = [size + sum(pair) for size, pair in zip(array.shape, widths, strict=True)]
        value = np.asarray(kwargs.get("constant_values", 0)).astype(numpy_dtype(array.dtype)).item()
        padded = torch.full(shape, value, dtype=array.dtype, device=array.device)
        inside = tuple(
            slice(before, before + size)
            for size, (before, _) in zip(array.shape, widths, strict=True)
        )
        padded[inside] = array
        return padded
    for axis, (before, after) in enumerate(widths):
        index = border_index(array.shape[axis], before, after, _PADS[mode], array.device)
        array = array.index_select(axis, index)
    return array


def roll_case(a: Any, shift: Any, axis: Any = None) -> Case | Refusal:
    return not_an_array(a) or Case("any")


def roll(a: Tensor, shift: Any, axis: Any) -> Tensor:
    return a.roll(shift, axis) if axis is not None else a.flatten().roll(shift).reshape(a.shape)


def repeat_case(a: Any, repeats: Any, axis: Any = None) -> Case | Refusal:
    if not isinstance(repeats, int):
        return refuse("a list of repeats", "repeats 为列表")
    return not_an_array(a) or Case("any")


def repeat(a: Tensor, repeats: int, axis: Any) -> Tensor:
    return a.repeat_interleave(repeats, axis)


def tile_case(A: Any, reps: Any) -> Case | Refusal:
    return not_an_array(A) or Case("any")


def tile(A: Tensor, reps: Any) -> Tensor:
    return A.tile(tuple(np.atleast_1d(reps).tolist()))


def where_case(condition: Any, x: Any = None, y: Any = None, /) -> Case | Refusal:
    arrays = (condition, x, y)
    for item in arrays:
        if refused := not_an_array(item):
            return refused
    if condition.dtype != bool or x.dtype != y.dtype:
        return refuse("x and y of different dtypes", "x 与 y 的 dtype 不同")
    return Case("any")


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return torch.where(condition, x, y)


def take_case(
    a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Case | Refusal:
    if refused := not_an_array(a) or not_an_array(indices) or not_default(out=out):
        return refused
    if indices.dtype != np.int64 or mode != "raise" or indices.ndim != 1 or axis is None:
        return refuse("indices that are not one row of int64", "索引不是一维 int64")
    if int(indices.min()) < 0 or int(indices.max()) >= a.shape[axis]:
        return refuse("negative indices, or beyond the end", "索引为负或越界")
    return Case("any")


def take(a: Tensor, indices: Tensor, axis: int, **_: Any) -> Tensor:
    return a.index_select(axis, indices)


def clip_case(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Case | Refusal:
    if refused := not_an_array(a) or not_default(out=out, min=min, max=max):
        return refused
    kind = (int,) if np.dtype(a.dtype).kind in "ui" else (int, float)
    if np.dtype(a.dtype).kind not in "uif" or type(a_min) not in kind or type(a_max) not in kind:
        return refuse(
            "limits that change the dtype",
            "界限会改变 dtype",
            "give limits of the array's kind",
            "请使用与数组同类的界限",
        )
    if np.dtype(a.dtype).kind in "ui":
        limits = np.iinfo(a.dtype)
        if a_min < limits.min or a_max > limits.max:
            return refuse("limits outside of the dtype", "界限超出 dtype 范围")
    return Case(str(a.dtype))


def clip(a: Tensor, a_min: Any, a_max: Any, **_: Any) -> Tensor:
    if a.is_floating_point():
        low, high = (np.asarray(item, numpy_dtype(a.dtype)).item() for item in (a_min, a_max))
        return a.clamp(low, high)
    return a.clamp(a_min, a_max)


def round_case(a: Any, decimals: int = 0, out: Any = None) -> Case | Refusal:
    if refused := not_an_array(a) or not_default(out=out):
        return refused
    if decimals or np.dtype(a.dtype).kind != "f":
        return refuse("decimals, or no floats", "指定了 decimals，或不是浮点数")
    return Case("float")


def round_(a: Tensor, decimals: int, out: None) -> Tensor:
    return a.round()


def sort_case(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Case | Refusal:
    return not_an_array(a) or not_default(order=order) or Case("any")


def sort(a: Tensor, axis: Any, **_: Any) -> Tensor:
    return (a.flatten().sort() if axis is None else a.sort(axis)).values


def _list_sample(rng: np.random.Generator) -> Call:
    shape = tuple(int(size) for size in rng.integers(1, 6, int(rng.integers(1, 4))))
    dtype = str(rng.choice(["uint8", "float32", "int64"]))
    return call([array_of(rng, shape, dtype) for _ in range(3)], int(rng.integers(len(shape))))


def _pad_sample(rng: np.random.Generator) -> Call:
    array = array_of(rng, (6, 7, 3), str(rng.choice(["uint8", "float32"])))
    widths = [(int(a), int(b)) for a, b in rng.integers(0, 3, (3, 2))]
    mode = str(rng.choice([*_PADS, "constant"]))
    if mode == "constant" and rng.integers(2):
        return call(array, widths, mode, constant_values=7)
    return call(array, widths, mode)


def _sampled(make: Callable[[np.random.Generator, np.ndarray], Call]) -> Sample:
    return lambda rng: make(rng, random_array(rng))


def _where_sample(rng: np.random.Generator) -> Call:
    x = random_array(rng)
    return call(x > 0, x, array_of(rng, x.shape, str(x.dtype)))


def _clip_sample(rng: np.random.Generator) -> Call:
    array = random_array(rng)
    if array.dtype.kind == "f":
        return call(array, -0.3, 0.7)
    return call(array, 10, 100)


def _take_sample(rng: np.random.Generator) -> Call:
    array = random_array(rng)
    return call(array, rng.integers(0, array.shape[0], 5), 0)


_A = {"a": "array"}
MOVES = (
    OpSpec("numpy.concatenate", concatenate_case, _list_sample, concatenate, {"arrays": "arrays"}, "array"),
    OpSpec("numpy.stack", concatenate_case, _list_sample, stack, {"arrays": "arrays"}, "array"),
    OpSpec("numpy.pad", pad_case, _pad_sample, pad, {"array": "array"}, "array"),
    OpSpec("numpy.roll", roll_case, _sampled(lambda rng, a: call(a, int(rng.integers(-5, 5)), random_axis(rng, a))), roll, _A, "array"),
    OpSpec("numpy.repeat", repeat_case, _sampled(lambda rng, a: call(a, int(rng.integers(1, 4)), random_axis(rng, a))), repeat, _A, "array"),
    OpSpec("numpy.tile", tile_case, _sampled(lambda rng, a: call(a, (2, 3))), tile, {"A": "array"}, "array"),
    OpSpec("numpy.where", where_case, _where_sample, where, {"condition": "array", "x": "array", "y": "array"}, "array"),
    OpSpec("numpy.take", take_case, _take_sample, take, {"a": "array", "indices": "array"}, "array"),
    OpSpec("numpy.clip", clip_case, _clip_sample, clip, _A, "array"),
    OpSpec("numpy.round", round_case, _sampled(lambda rng, a: call(a.astype("float32") * 3)), round_, _A, "array"),
    OpSpec("numpy.sort", sort_case, _sampled(lambda rng, a: call(a, -1)), sort, _A, "array"),
)  # fmt: skip
