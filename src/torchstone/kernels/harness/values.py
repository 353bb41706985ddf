"""Values on the wire: numbers and containers as JSON, tensors and arrays as raw buffers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.kits import mindspore_kit

Tree = dict[str, Any]
Place = Callable[[Tree, bytes], Any]
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


def encode(value: Any, buffers: list[bytes]) -> Tree:
    """A value as a tree; tensors go to the buffers."""
    if isinstance(value, torch.Tensor):
        buffers.append(raw_bytes(value))
        return {"array": "torch", "dtype": name_of(value.dtype), "shape": list(value.shape),
                "stride": list(value.stride()), "buffer": len(buffers) - 1}  # fmt: skip
    if isinstance(value, np.ndarray):
        tensor = torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape))
        stride = [step // max(value.itemsize, 1) for step in value.strides]
        return {**encode(tensor, buffers), "array": "numpy", "stride": stride}
    if mindspore_kit.is_tensor(value):
        return {**encode(value.asnumpy(), buffers), "array": "mindspore"}
    if isinstance(value, np.generic):
        array = np.asarray(value)
        return {**encode(array, buffers), "array": "scalar"}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [encode(item, buffers) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": [[key, encode(item, buffers)] for key, item in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    if isinstance(value, torch.dtype):
        return {"torch_dtype": name_of(value)}
    raise UnknownValueError(f"a value of type {type(value).__name__}")


def decode(tree: Tree, buffers: Sequence[bytes], place: Place) -> Any:
    """The value of a tree; `place` puts an array where it belongs, a shared one once."""
    return _decode(tree, buffers, place, {})


def _decode(tree: Tree, buffers: Sequence[bytes], place: Place, known: dict[int, Any]) -> Any:
    def each(items: Sequence[Tree]) -> list[Any]:
        return [_decode(item, buffers, place, known) for item in items]

    if "array" in tree:
        number = tree["buffer"]
        if not tree.get("shared"):
            return place(tree, buffers[number])
        if number not in known:
            known[number] = place(tree, buffers[number])
        return known[number]
    if "list" in tree:
        return each(tree["list"])
    if "tuple" in tree:
        return tuple(each(tree["tuple"]))
    if "dict" in tree:
        return dict(zip([key for key, _ in tree["dict"]], each([item for _, item in tree["dict"]]),
                        strict=True))  # fmt: skip
    if "float" in tree:
        return float(tree["float"])
    if "torch_dtype" in tree:
        return dtype_of(tree["torch_dtype"])
    return tree["plain"]


def plain_place(tree: Tree, data: bytes) -> Any:
    """An array in ordinary memory."""
    tensor = from_raw(data, tree["dtype"], tree["shape"])
    if tree["array"] == "torch":
        return tensor
    array = tensor.numpy()
    if tree["array"] == "mindspore":
        return mindspore_kit.tensor(array)
    return array[()] if tree["array"] == "scalar" else array
