"""Tensors as the pickle of a `.pt` file describes them: records instead of what torch would build."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import torch

from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class StorageRecord:
    """A storage that the pickle names."""

    key: str
    dtype: torch.dtype
    count: int


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor that the pickle describes."""

    storage: StorageRecord
    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    quantizer: Quantizer | None = None
    stored_as: str = ""
    """What the file says it is, where that is more than the type."""


@dataclass(frozen=True, slots=True)
class Quantizer:
    """value = (integer - zero point) * scale, with one of each, or one for each index of an axis."""

    scale: float | TensorRecord
    zero_point: float | TensorRecord
    axis: int = -1


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A tensor whose values are not in the file, or not in a form that can be read."""

    shape: tuple[int, ...]
    given: Text
    expected: Text
    todo: Text


_SAVE_DENSE = Text("save it as a plain tensor", "请保存为普通张量")
_PLAIN = Text("a tensor with its values in the file", "数值存于文件中的张量")


def whole_numbers(value: object) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple | list) else ()


def rebuild_tensor(
    storage: object, offset: object, shape: object, stride: object, *rest: object
) -> TensorRecord | UnreadableRecord:
    sizes, steps = whole_numbers(shape), whole_numbers(stride)
    if not isinstance(storage, StorageRecord):
        return _unreadable(sizes, Text("a tensor without a storage", "没有存储的张量"))
    numbers = (offset, *sizes, *steps)
    if len(sizes) != len(steps) or not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
        raise pickle.UnpicklingError(f"a tensor of shape {shape} and stride {stride}")
    kept = next((item for item in rest if isinstance(item, torch.dtype)), storage.dtype)
    return TensorRecord(storage, kept, int(str(offset)), sizes, steps)


def rebuild_quantised(
    storage: object, offset: object, shape: object, stride: object, parameters: object = (),
    *_: object,
) -> TensorRecord | UnreadableRecord:  # fmt: skip
    made = rebuild_tensor(storage, offset, shape, stride)
    if isinstance(made, UnreadableRecord):
        return made
    name = str(made.dtype).removeprefix("torch.")
    quantizer = _quantizer(parameters)
    if quantizer is None or made.dtype not in (torch.qint8, torch.quint8, torch.qint32):
        return _unreadable(
            made.shape,
            Text(
                f"a quantised tensor of {name} with unknown scales",
                f"缩放方式未知的量化张量（{name}）",
            ),
        )
    return replace(made, quantizer=quantizer, stored_as=name)


def _quantizer(parameters: object) -> Quantizer | None:
    match parameters:
        case (torch.qscheme(), float() as scale, int() as zero):
            return Quantizer(scale, zero)
        case (torch.qscheme(), TensorRecord() as scales, TensorRecord() as zeros, int() as axis):
            return Quantizer(scales, zeros, axis)
    return None


def rebuild_sparse(layout: object, data: object = (), *_: object) -> object:
    """The stored values; where they stand does not change what a format does to them."""
    parts = data if isinstance(data, tuple) else ()
    tensors = [item for item in parts if isinstance(item, TensorRecord | UnreadableRecord)]
    sizes = next((whole_numbers(item) for item in parts if isinstance(item, tuple | list)), ())
    if not tensors or isinstance(tensors[-1], UnreadableRecord):
        return (
            tensors[-1]
            if tensors
            else _unreadable(sizes, Text("a sparse tensor without values", "没有数值的稀疏张量"))
        )
    return _as_part(tensors[-1], f"{layout} of {_sizes(sizes)}")


def rebuild_nested(values: object = None, *_: object) -> object:
    return _as_part(values, "nested") if isinstance(values, TensorRecord) else values


def _as_part(values: TensorRecord, said: str) -> TensorRecord:
    name = values.stored_as or str(values.dtype).removeprefix("torch.")
    return replace(values, stored_as=f"{name} {said}")


def rebuild_meta(_: object = None, shape: object = (), *__: object) -> UnreadableRecord:
    said = Text("a tensor on the meta device, which has no values", "meta 设备上的张量，没有数值")
    todo = Text("load the weights before saving", "请在保存前加载权重")
    return UnreadableRecord(whole_numbers(shape), said, _PLAIN, todo)


def rebuild_wrapper(
    _: object = None, __: object = None, shape: object = (), *___: object
) -> object:
    return _unreadable(
        whole_numbers(shape),
        Text("a tensor subclass without values of its own", "自身没有数值的张量子类"),
    )


def rebuild_from_numpy(*_: object) -> UnreadableRecord:
    return _unreadable(
        (),
        Text(
            "a tensor saved as a numpy array inside the pickle", "以 numpy 数组存于 pickle 中的张量"
        ),
    )


def rebuild_from_type(rebuild: object, _: object, arguments: object, *__: object) -> object:
    """A tensor subclass: the function that the file names has been replaced by one of these."""
    if not callable(rebuild) or not isinstance(arguments, tuple):
        return _unreadable((), Text("a tensor subclass", "张量子类"))
    made: object = rebuild(*arguments)
    return made


def first_argument(value: object = None, *_: object) -> object:
    return value


def layout_name(name: object = "", *_: object) -> str:
    return str(name).removeprefix("torch.")[:32]


def _unreadable(shape: tuple[int, ...], given: Text) -> UnreadableRecord:
    return UnreadableRecord(shape, given, _PLAIN, _SAVE_DENSE)


def _sizes(shape: tuple[int, ...]) -> str:
    return "×".join(str(size)[:20] for size in shape[:8]) or "()"
