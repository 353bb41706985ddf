"""What `torch.from_numpy` and `torch.stack` make of handles: tensors that are not computed yet.

To the program and to torch's own C code they are tensors on the CPU. Whatever cannot be recorded
computes them there and then with the original functions; from then on the computed tensor answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.deferred.handle import Deferred, materialised
from torchstone.dataflow.migration.moves.numpy._elementwise import torch_dtype
from torchstone.dataflow.migration.nested import map_leaves
from torchstone.observe.compat.modes import DisableTorchFunctionSubclass
from torchstone.observe.compat.tensors import make_wrapper_subclass

_ARITHMETIC = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "__add__": np.add, "__sub__": np.subtract, "__mul__": np.multiply, "__truediv__": np.true_divide,
}  # fmt: skip
_FACTS = {
    Tensor.shape.__get__, Tensor.dtype.__get__, Tensor.device.__get__, Tensor.ndim.__get__,  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__, Tensor.is_nested.__get__,  # type: ignore[attr-defined]
    Tensor.size, Tensor.dim, Tensor.__len__, Tensor.numel, Tensor.nelement, Tensor.__hash__,
    Tensor.is_floating_point, torch.is_floating_point,
}  # fmt: skip
"""What is known of a tensor before it is computed."""


class UncomputedTensor(Tensor):
    """A tensor of known shape and number format without memory of its own: code that goes past
    `__torch_function__` meets a tensor that torch itself made, and computes it, too."""

    _computed: Tensor | None

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], dtype: torch.dtype) -> Self:
        made: Self = make_wrapper_subclass(cls, shape, dtype=dtype)
        made._computed = None
        return made

    def torchstone_materialise(self) -> Tensor:
        """Kept: what is written to it, or set on it, is there when it is asked again."""
        if self._computed is None:
            self._computed = self._compute()
        return self._computed

    def _compute(self) -> Tensor:
        raise NotImplementedError

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _FACTS and isinstance(args[0], cls) and args[0]._computed is None:
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        if not kwargs and (record := _RECORDED.get(func)) is not None:
            if (made := record(*args)) is not None:
                return made
        return func(*real(args), **real(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*real(args), **real(kwargs or {}))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """What the program writes to a file is the tensor."""
        return self.torchstone_materialise().__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.torchstone_materialise().__deepcopy__(memo)

    def __copy__(self) -> Any:
        return self.torchstone_materialise().detach()


class DeferredTensor(UncomputedTensor):
    """Shares its memory with the array, as the tensor of `torch.from_numpy` does."""

    _array: Deferred

    def _compute(self) -> Tensor:
        return torch.from_numpy(self._array.torchstone_materialise())


def tensor_of(array: Any) -> Tensor:
    """`torch.from_numpy` of a handle."""
    try:
        kind = torch_dtype(array.dtype)
    except (KeyError, TypeError):
        return torch.from_numpy(materialised(array))
    if type(array) is not Deferred or not array._steps:
        return torch.from_numpy(materialised(array))
    made = DeferredTensor.of_shape(array.shape, kind)
    made._array = array
    return made


def recorded_array(value: Any) -> Deferred | None:
    """The array of a tensor that nobody has computed or written to."""
    if type(value) is DeferredTensor and value._computed is None and value._array._steps:
        return value._array
    return None


class DeferredBatch(UncomputedTensor):
    """The handles of a batch, stacked, as they were then."""

    items: tuple[Deferred, ...]

    def _compute(self) -> Tensor:
        return torch.stack([torch.from_numpy(item.torchstone_materialise()) for item in self.items])


def stack(items: Sequence[Deferred | None]) -> DeferredBatch | None:
    """What `torch.stack` of the arrays is; None if they have to be computed for it."""
    if not equal_in_kind(items):
        return None
    held = tuple(item.snapshot() for item in items if item is not None)
    shape, kind = held[0].shape, torch_dtype(held[0].dtype)
    made = DeferredBatch.of_shape((len(held), *shape), kind)
    made.items = held
    return made


def equal_in_kind(arrays: Sequence[Deferred | None]) -> bool:
    """Whether a batch can be made of them later: what torch refuses or promotes it does itself."""
    recorded = [array for array in arrays if type(array) is Deferred and array._steps]
    if not recorded or len(recorded) < len(arrays):
        return False
    return len({(array.shape, array.dtype) for array in recorded}) == 1


def real(value: Any) -> Any:
    """The same with every handle computed."""
    return map_leaves(
        lambda item: item.torchstone_materialise() if is_uncomputed(item) else item, value
    )


def is_uncomputed(value: Any) -> bool:
    return isinstance(value, UncomputedTensor) or type(value) is Deferred


# -- what is recorded: each gives None for a call that has to be computed


def _permute(tensor: Any, *dims: Any) -> Tensor | None:
    array = recorded_array(tensor)
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], tuple | list) else dims
    if array is None or any(type(axis) is not int for axis in order):
        return None
    if sorted(axis % array.ndim for axis in order) != list(range(array.ndim)):
        return None
    if any(not -array.ndim <= axis < array.ndim for axis in order):
        return None
    return tensor_of(array.transpose(tuple(order)))


def _transpose(tensor: Any, *dims: Any) -> Tensor | None:
    order = list(range(tensor.ndim))
    if len(dims) != 2 or any(type(axis) is not int or not -len(order) <= axis < len(order) for axis in dims):  # fmt: skip
        return None
    order[dims[0]], order[dims[1]] = order[dims[1]], order[dims[0]]
    return _permute(tensor, order)


def _contiguous(tensor: Any, *args: Any) -> Tensor | None:
    array = recorded_array(tensor)
    return None if array is None or args else tensor_of(array.contiguous())


def _float(tensor: Any, *args: Any) -> Tensor | None:
    return None if args else _to(tensor, torch.float32)


def _to(tensor: Any, *args: Any) -> Tensor | None:
    array = recorded_array(tensor)
    if array is None or args != (torch.float32,):
        return None
    return tensor if array.dtype == np.float32 else tensor_of(array.astype(np.float32))


def _clone(tensor: Any, *args: Any) -> Tensor | None:
    array = recorded_array(tensor)
    return None if array is None or args else tensor_of(array.copy("K"))


def _stack(tensors: Any, *args: Any) -> Tensor | None:
    arrays = [recorded_array(item) for item in tensors] if type(tensors) in (list, tuple) else []
    return None if args else stack(arrays)


def _arithmetic(function: np.ufunc) -> Callable[..., Tensor | None]:
    """torch and numpy agree on float32 with float32 or a number of Python; not on integers."""

    def record(tensor: Any, operand: Any) -> Tensor | None:
        array = recorded_array(tensor)
        if array is None or array.dtype != np.float32:
            return None
        if type(operand) is Tensor:
            plain = operand.dtype is torch.float32 and operand.device.type == "cpu"
            if not plain or operand.requires_grad or operand.is_neg():
                return None
            operand = operand.numpy().copy()
        elif type(operand) not in (int, float):
            return None
        return tensor_of(function(array, operand))

    return record


_RECORDED: dict[Any, Callable[..., Tensor | None]] = {
    Tensor.permute: _permute, Tensor.transpose: _transpose, Tensor.contiguous: _contiguous,
    Tensor.float: _float, Tensor.to: _to, Tensor.clone: _clone, torch.stack: _stack,
    **{getattr(Tensor, name): _arithmetic(function) for name, function in _ARITHMETIC.items()},
}  # fmt: skip
