"""Values on the wire: numbers and containers as JSON, tensors and arrays as raw buffers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.kits import mindspore_kit
from torchstone.kernels.messages.trees import Tree

Place = Callable[[Tree, bytes], object]
_DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype)
}


class UnknownValueError(TypeError):
    """A value that no problem should hand over."""


def dtype_of(name: str) -> torch.dtype:
    """The torch dtype of this name."""
    return _DTYPES[name]


def name_of(dtype: torch.dtype) -> str:
    """The name of a torch dtype without its prefix."""
    return str(dtype).removeprefix("torch.")


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """The elements in logical order, whatever the strides."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def from_raw(data: bytes, dtype: str, shape: Sequence[int]) -> torch.Tensor:
    """A contiguous tensor of its own from its elements in logical order."""
    if not data:
        return torch.empty(tuple(shape), dtype=dtype_of(dtype))
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return flat.view(dtype_of(dtype)).reshape(tuple(shape))


def encode(value: object, buffers: list[bytes]) -> Tree:
    """A value as a tree; the elements of arrays go to the buffers."""
    if isinstance(value, torch.Tensor):
        buffers.append(raw_bytes(value))
        return Tree("torch", name_of(value.dtype), list(value.shape), list(value.stride()),
                    len(buffers) - 1)  # fmt: skip
    if isinstance(value, np.ndarray):
        tensor = torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape))
        stride = [step // max(value.itemsize, 1) for step in value.strides]
        return replace(encode(tensor, buffers), kind="numpy", stride=stride)
    if mindspore_kit.is_tensor(value):
        return replace(encode(mindspore_kit.array_of(value), buffers), kind="mindspore")
    if isinstance(value, np.generic):
        return replace(encode(np.asarray(value), buffers), kind="scalar")
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return Tree(kind, items=[encode(item, buffers) for item in value])
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return Tree(
            "dict", items=[encode(item, buffers) for item in value.values()], names=list(value)
        )
    if isinstance(value, float) and not math.isfinite(value):
        return Tree("float", plain=repr(value))
    if value is None or isinstance(value, bool | int | float | str):
        return Tree("plain", plain=value)
    if isinstance(value, torch.dtype):
        return Tree("torch_dtype", dtype=name_of(value))
    raise UnknownValueError(f"a value of type {type(value).__name__}")


def decode(tree: Tree, buffers: Sequence[bytes], place: Place) -> Any:
    """The value of a tree; `place` puts an array where it belongs, a shared one once."""
    return _decode(tree, buffers, place, {})


def _decode(tree: Tree, buffers: Sequence[bytes], place: Place, known: dict[int, object]) -> object:
    if tree.is_array:
        if not tree.shared:
            return place(tree, buffers[tree.buffer])
        if tree.buffer not in known:
            known[tree.buffer] = place(tree, buffers[tree.buffer])
        return known[tree.buffer]
    items = [_decode(item, buffers, place, known) for item in tree.items]
    if tree.kind == "list":
        return items
    if tree.kind == "tuple":
        return tuple(items)
    if tree.kind == "dict":
        return dict(zip(tree.names, items, strict=True))
    if tree.kind == "float":
        return float(str(tree.plain))
    return dtype_of(tree.dtype) if tree.kind == "torch_dtype" else tree.plain


def plain_place(tree: Tree, data: bytes) -> object:
    """An array in ordinary memory."""
    tensor = from_raw(data, tree.dtype, tree.shape)
    if tree.kind == "torch":
        return tensor
    array = tensor.numpy()
    if tree.kind == "mindspore":
        return mindspore_kit.tensor(array)
    return array[()] if tree.kind == "scalar" else array
