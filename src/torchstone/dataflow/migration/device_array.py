"""An array that stays on the device: numpy's operators run there, all else brings it back.

A plan that keeps results on the device hands these to the program. Whoever needs a numpy array
gets one (`__array__`), and pays the transfer.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin

from torchstone.dataflow.migration.moves.numpy import _elementwise as elementwise


class DeviceArray(NDArrayOperatorsMixin):
    """A tensor that answers as a numpy array of its dtype and shape would."""

    __array_priority__ = 1000

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self._shown: np.ndarray | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """`isinstance(image, np.ndarray)` is true, as it is for what it stands for."""
        return np.ndarray

    @property
    def device(self) -> torch.device:
        return self.tensor.device

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return elementwise.numpy_dtype(self.tensor.dtype)

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def size(self) -> int:
        return self.tensor.numel()

    @property
    def nbytes(self) -> int:
        return self.tensor.numel() * self.tensor.element_size()

    @property
    def T(self) -> DeviceArray:  # noqa: N802 - numpy's name
        return self.transpose()

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.tensor.detach().cpu().numpy()
        if array.base is not None or self.tensor.device.type == "cpu":
            array = array.copy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def numpy(self) -> np.ndarray:
        """A numpy array of its own."""
        return self.__array__()

    torchstone_materialise = numpy

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self._shown = self.numpy()  # kept: whoever asks reads its memory
        return self._shown.__array_interface__

    def torchstone_take(self, array: np.ndarray) -> None:
        """The values of an array that stood for it while somebody wrote to that."""
        self.tensor.copy_(torch.from_numpy(np.ascontiguousarray(array)))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and ufunc.__name__ in _UFUNCS:
            try:
                operands = [_operand(item, self.device) for item in inputs]
                return DeviceArray(elementwise.apply_ufunc(_UFUNCS[ufunc.__name__], *operands))
            except (TypeError, KeyError, RuntimeError):
                pass  # numpy itself decides what such a call means
        return call_on_host(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_on_host(func, args, kwargs)

    def __getitem__(self, key: Any) -> Any:
        if _is_basic(key):
            part = self.tensor[key]
            return DeviceArray(part) if part.ndim else self.numpy()[key]
        return self.numpy()[_host(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        array = self.numpy()
        array[_host(key)] = _host(value)
        self.torchstone_take(array)

    def __iter__(self) -> Any:
        return (self[index] for index in range(len(self)))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = np.dtype(dtype)
        if args or kwargs or (self.dtype.kind == "f" and wanted.kind != "f"):
            # what a float outside of the range becomes is numpy's to say
            return self.numpy().astype(dtype, *args, **kwargs)
        return DeviceArray(self.tensor.to(elementwise.torch_dtype(wanted), copy=True))

    def transpose(self, *axes: Any) -> DeviceArray:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return DeviceArray(self.tensor.permute(tuple(order or reversed(range(self.ndim)))))

    def reshape(self, *shape: Any) -> DeviceArray:
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return DeviceArray(self.tensor.reshape(tuple(wanted)))

    def copy(self) -> DeviceArray:
        return DeviceArray(self.tensor.clone())

    def __float__(self) -> float:
        return float(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device='{self.device}')"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _WRITING:
            return lambda *args, **kwargs: call_on_host(getattr(np.ndarray, name), (self, *args), kwargs)  # fmt: skip
        return getattr(self.numpy(), name)


_WRITING = frozenset("fill sort partition put itemset byteswap".split())
"""Methods that write to the array."""


def call_on_host(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of real arrays; what it wrote to them goes back to the device."""
    stands_for: dict[int, tuple[np.ndarray, np.ndarray, DeviceArray]] = {}
    result = func(
        *_hosts(args, stands_for), **{k: _hosts(v, stands_for) for k, v in kwargs.items()}
    )
    for array, before, owner in stands_for.values():
        if array.tobytes() != before.tobytes():
            owner.torchstone_take(array)
    own = stands_for.get(id(result))
    return result if own is None else own[2]


_UFUNCS = {name: name for name in elementwise.TORCH_OF} | {"divide": "true_divide"}


def _operand(item: Any, device: torch.device) -> Any:
    if isinstance(item, DeviceArray):
        return item.tensor
    if isinstance(item, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(item)).to(device)
    return item


def _host(item: Any) -> Any:
    return item.numpy() if isinstance(item, DeviceArray) else item


def _hosts(value: Any, stands_for: dict[int, tuple[np.ndarray, np.ndarray, DeviceArray]]) -> Any:
    """The same with real arrays; the same array for the same owner, however often it occurs."""
    if type(value) in (tuple, list):
        return type(value)(_hosts(item, stands_for) for item in value)
    if type(value) is not DeviceArray:
        return value
    for array, _, owner in stands_for.values():
        if owner is value:
            return array
    array = value.numpy()
    stands_for[id(array)] = (array, array.copy(), value)
    return array


def _is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None
        or part is Ellipsis
        or (isinstance(part, slice) and (part.step is None or operator.index(part.step) > 0))
        or (isinstance(part, int) and not isinstance(part, bool))
        for part in parts
    )
