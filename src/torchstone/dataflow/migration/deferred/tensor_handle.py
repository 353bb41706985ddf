"""What `torch.from_numpy` makes of a handle: a tensor that is not computed yet.

To the program it is a tensor on the CPU that shares its memory with the array, as torch's own does.
Whatever cannot be recorded computes it there and then with the original functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.deferred.handle import Deferred
from torchstone.dataflow.migration.moves.numpy._elementwise import torch_dtype

_ARITHMETIC = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "__add__": np.add, "__sub__": np.subtract, "__mul__": np.multiply, "__truediv__": np.true_divide,
}  # fmt: skip


class DeferredTensor:
    """A tensor whose array is not computed yet."""

    def __init__(self, array: Deferred) -> None:
        self._array = array

    def torchstone_materialise(self) -> Tensor:
        return torch.from_numpy(self._array.torchstone_materialise())

    # -- what a tensor is

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return Tensor

    @property
    def shape(self) -> torch.Size:
        return torch.Size(self._array.shape)

    @property
    def dtype(self) -> torch.dtype:
        return torch_dtype(self._array.dtype)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    def dim(self) -> int:
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def __len__(self) -> int:
        return self.shape[0]

    # -- what is recorded

    def permute(self, *dims: Any) -> Any:
        order = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
        return _as_tensor(self._array.transpose(tuple(order)))

    def transpose(self, first: int, second: int) -> Any:
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return self.permute(order)

    def contiguous(self, *args: Any, **kwargs: Any) -> Any:
        # a batch of them is laid out anew, so that only a program that asks for strides can tell
        return self if not args and not kwargs else self._real("contiguous", args, kwargs)

    def float(self) -> Any:
        return self.to(torch.float32)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        if args != (torch.float32,) or kwargs:
            return self._real("to", args, kwargs)
        return self if self.dtype is torch.float32 else _as_tensor(self._array.astype(np.float32))

    def clone(self, *args: Any, **kwargs: Any) -> Any:
        return self._real("clone", args, kwargs) if args or kwargs else _as_tensor(self._array.copy())  # fmt: skip

    def _arithmetic(self, name: str, operand: Any) -> Any:
        """torch and numpy agree on float32 with float32 or a number of Python; not on integers."""
        if type(operand) is Tensor and operand.dtype is torch.float32 and operand.device.type == "cpu":  # fmt: skip
            operand = operand.detach().numpy().copy()
        elif type(operand) not in (int, float):
            return self._real(name, (operand,), {})
        if self.dtype is not torch.float32:
            return self._real(name, (operand,), {})
        return _as_tensor(_ARITHMETIC[name](self._array, operand))

    # -- everything else

    def _real(self, name: str, args: Any, kwargs: Any) -> Any:
        return getattr(self.torchstone_materialise(), name)(*real(args), **real(kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.torchstone_materialise(), name)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torchstone.dataflow.migration.deferred.batch import stack

        if func is torch.stack and len(args) == 1 and not kwargs:
            if all(type(item) is DeferredTensor for item in args[0]):
                return stack([item._array for item in args[0]])
        return func(*real(args), **real(kwargs or {}))

    def __reduce__(self) -> Any:
        """One that leaves its process arrives as the tensor."""
        from torchstone.dataflow.migration.deferred.batch import arrived_tensor

        array = self._array
        return arrived_tensor, (array._session, (array._base,), array._steps)


def tensor_of(array: Deferred) -> Any:
    """`torch.from_numpy` of a handle."""
    try:
        torch_dtype(array.dtype)
    except (KeyError, TypeError):
        return torch.from_numpy(array.torchstone_materialise())
    return _as_tensor(array)


def real(value: Any) -> Any:
    """The same with every handle computed."""
    if type(value) is DeferredTensor:
        return value.torchstone_materialise()
    if type(value) is Deferred:
        return value.torchstone_materialise()
    if type(value) in (tuple, list):
        return type(value)(map(real, value))
    if type(value) is dict:
        return {key: real(item) for key, item in value.items()}
    return value


def _as_tensor(array: Any) -> Any:
    return DeferredTensor(array) if type(array) is Deferred and array._steps else torch.from_numpy(np.asarray(array))  # fmt: skip


def _recorded_method(name: str) -> Any:
    def method(self: DeferredTensor, operand: Any) -> Any:
        return self._arithmetic(name, operand)

    return method


def _real_method(name: str) -> Any:
    def method(self: DeferredTensor, *args: Any, **kwargs: Any) -> Any:
        return self._real(name, args, kwargs)

    return method


_PYTHONS_OWN = frozenset(
    "__class__ __dict__ __weakref__ __new__ __init__ __init_subclass__ __subclasshook__ __getattribute__ __getattr__ "
    "__setattr__ __delattr__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __sizeof__ __dir__ __doc__ __module__ "
    "__torch_function__ __torch_dispatch__ __slots__ __len__ __hash__".split()
)
for _name in _ARITHMETIC:
    setattr(DeferredTensor, _name, _recorded_method(_name))
for _name in dir(Tensor):
    # operators are looked up on the type, past __getattr__
    if (
        _name.startswith("__")
        and _name.endswith("__")
        and _name not in (*_PYTHONS_OWN, *_ARITHMETIC)
    ):
        if callable(getattr(Tensor, _name)):
            setattr(DeferredTensor, _name, _real_method(_name))
