"""What counts as a tensor: torch tensors of every kind, numpy arrays, and nothing that runs code."""

from __future__ import annotations

import numpy as np
import torch

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.tensors.analysis.values.source import MemorySource

_DENSE = 1 << 24
"""Values up to which a sparse tensor is looked at as a dense one."""

_UNREADABLE = ("bits", "float4")
"""Types of which torch only moves the bytes."""
_MOST_AXES = 64  # of numpy, and of most operators of torch


def accept_tensor(value: object, name: str) -> MemorySource:
    """The tensor as a source of values; an error that says what to pass otherwise."""
    if isinstance(value, np.ndarray | np.generic):
        value = _from_numpy(np.asarray(value), name)
    if not isinstance(value, torch.Tensor):
        raise InputError(
            name, Text(f"a {type(value).__name__}", type(value).__name__),
            Text("a torch tensor or a numpy array", "torch 张量或 numpy 数组"),
            Text("pass torch.as_tensor(…) of it", "请传入 torch.as_tensor(…) 的结果"),
        )  # fmt: skip
    lazy = isinstance(
        value, torch.nn.UninitializedParameter | torch.nn.parameter.UninitializedBuffer
    )
    if lazy or value.is_meta or type(value).__name__ == "FakeTensor":
        raise InputError(
            name, Text("a lazy tensor, which has no values", "尚未初始化、没有数值的张量") if lazy
            else Text("a tensor on the meta device, which has no values", "meta 设备上没有数值的张量"),
            Text("a tensor with values", "有实际数值的张量"),
            Text("load the weights first", "请先加载权重"),
        )  # fmt: skip
    kind = str(value.dtype).removeprefix("torch.")
    if kind.startswith(_UNREADABLE) or value.dim() > _MOST_AXES:
        raise InputError(
            name, Text(
                f"a tensor of {kind} with {value.dim()} axes", f"类型为 {kind}、有 {value.dim()} 个轴的张量"),
            Text(f"a type that torch can convert, and at most {_MOST_AXES} axes",
                 f"torch 可转换的类型，且至多 {_MOST_AXES} 个轴"),
            Text("convert or reshape it first", "请先转换或改变形状"),
        )  # fmt: skip
    return _from_torch(value.detach())


def _from_numpy(array: np.ndarray, name: str) -> torch.Tensor:
    if array.dtype.kind not in "biufc":
        raise InputError(
            name, Text(f"an array of {array.dtype}", f"类型为 {array.dtype} 的数组"),
            Text("an array of numbers", "数值数组"),
            Text("convert it to a numeric dtype first; object arrays are never opened",
                 "请先转换为数值类型；对象数组不会被打开"),
        )  # fmt: skip
    if array.dtype.itemsize * (1 if array.dtype.kind != "c" else 0.5) > 8:
        array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if any(stride < 0 for stride in array.strides) or not array.flags.writeable:
        array = array.copy()
    return torch.from_numpy(array)


def _from_torch(tensor: torch.Tensor) -> MemorySource:
    dtype = str(tensor.dtype).removeprefix("torch.")
    notes: list[Text] = []
    if tensor.is_nested:
        tensor = tensor.values()
        notes.append(Text("a nested tensor: its values were read", "嵌套张量：读取其数值"))
    if tensor.layout != torch.strided:
        tensor = _from_sparse(tensor, notes)
    if tensor.is_quantized:
        tensor = tensor.dequantize()
        notes.append(Text("a quantised tensor, dequantised", "量化张量，已反量化"))
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
        notes.append(
            Text(
                "real and imaginary parts were read as a last axis of two",
                "实部与虚部作为长度为 2 的末轴读取",
            )
        )
    if tensor.dtype in (torch.float64, torch.int64, torch.int32):
        notes.append(
            Text("shares were counted after rounding to fp32", "各占比在舍入为 fp32 后统计")
        )
    return MemorySource(tensor.resolve_neg(), tuple(tensor.shape), dtype, tuple(notes))


def _from_sparse(tensor: torch.Tensor, notes: list[Text]) -> torch.Tensor:
    if tensor.numel() <= _DENSE:
        notes.append(Text("a sparse tensor, read as a dense one", "稀疏张量，按稠密张量读取"))
        return tensor.to_dense()
    notes.append(
        Text(
            "a large sparse tensor: only the stored values were read",
            "大型稀疏张量：只读取已存储的值",
        )
    )
    coordinates = tensor.layout == torch.sparse_coo
    return tensor.coalesce().values() if coordinates else tensor.values()
