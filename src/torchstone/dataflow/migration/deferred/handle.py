"""The handle that stands for an image in a worker: the image as it was, and what is to be done.

To the program it is a numpy array. Whatever cannot be recorded computes it there and then. Views share memory with their origin as soon as somebody writes to either.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from torchstone.dataflow.migration.moves.numpy._elementwise import ROUNDED, TORCH_OF
from torchstone.dataflow.migration.nested import map_leaves
from torchstone.dataflow.migration.steps import ITEM, Step, step

Compute = Callable[[np.ndarray, tuple[Step, ...]], np.ndarray]
"""Makes the array of a base and its steps, now."""
_UFUNCS = {name: name for name in TORCH_OF if name not in ROUNDED} | {"divide": "true_divide"}
_VIEWS = ("transpose", "getitem", "contiguous")
"""Steps whose result may be the memory of what they are taken of."""


class Deferred(NDArrayOperatorsMixin):
    """An array that is not computed yet."""

    # torch's loaders know an array of numpy by the module of its type
    __module__ = "numpy"
    __array_priority__ = 1000

    def __init__(
        self, base: np.ndarray, steps: tuple[Step, ...], session: str, compute: Compute,
        origin: tuple[Deferred, Step] | None = None,
    ) -> None:  # fmt: skip
        self._base = base
        self._steps = steps
        self._session = session
        self._compute = compute
        self._origin = origin
        self._views: list[weakref.ref[Deferred]] = []

    # -- recording

    def recorded(self, new: Step) -> Deferred:
        """The same with one step more. Raises if the step does not fit the array."""
        new.shape_and_dtype(self.shape, self.dtype)
        origin = (self, new) if new.kind in _VIEWS else None
        made = Deferred(self._base, (*self._steps, new), self._session, self._compute, origin)
        if origin:
            self._views.append(weakref.ref(made))
        return made

    def _try(self, kind: str, name: str, arguments: Any) -> Deferred | None:
        if not self._steps:  # computed already: numpy does the rest
            return None
        try:
            return self.recorded(step(kind, name, arguments))
        except (TypeError, ValueError, IndexError, RuntimeError, KeyError, NotImplementedError):
            return None

    def torchstone_materialise(self) -> np.ndarray:
        """The array, computed here and now; kept, so that views and writes agree."""
        if self._origin is not None:
            self._origin[0].torchstone_materialise()  # settles its views, this one among them
        elif self._steps or self._views:
            self._settle(self._compute(self._base, self._steps) if self._steps else self._base)
        return self._base

    def _settle(self, value: np.ndarray) -> None:
        views, self._views = self._views, []
        self._base, self._steps, self._origin = value, (), None
        for reference in views:
            view = reference()
            if view is not None and view._origin is not None:
                view._settle(view._origin[1].of_item(value, _no_call))

    # -- what an array is

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self._outcome()[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._outcome()[1]

    def _outcome(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        shape, dtype = self._base.shape, self._base.dtype
        for item in self._steps:
            shape, dtype = item.shape_and_dtype(shape, dtype)
        return shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.torchstone_materialise()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.torchstone_materialise().__array_interface__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = _UFUNCS.get(ufunc.__name__)
        if (
            method == "__call__"
            and not kwargs
            and name
            and sum(type(i) is Deferred for i in inputs) == 1
        ):
            operands = tuple(ITEM if item is self else _snapshot(item) for item in inputs)
            if (made := self._try("ufunc", name, operands)) is not None:
                return made
        out = kwargs.get("out", ())
        if out:
            kwargs["out"] = tuple(materialised(item) for item in out)
        result = getattr(ufunc, method)(*map(materialised, inputs), **materialised(kwargs))
        return out[0] if len(out) == 1 else result

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if args and args[0] is self:
            if func is np.transpose and not kwargs and len(args) <= 2:
                return self.transpose(*args[1:])
            if func.__name__ in ("array", "copy") and len(args) == 1 and not kwargs:
                return self.copy("K")
        return func(*materialised(args), **materialised(kwargs))

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if all(isinstance(part, slice) and (part.step is None or part.step > 0) for part in parts):
            if (made := self._try("getitem", "", parts)) is not None:
                return made
        return self.torchstone_materialise()[materialised(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.torchstone_materialise()[materialised(key)] = materialised(value)

    def __iter__(self) -> Any:
        return iter(self.torchstone_materialise())

    def transpose(self, *axes: Any) -> Any:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = tuple(int(axis) for axis in order or reversed(range(self.ndim)))
        made = self._try("transpose", "", tuple(axis % self.ndim for axis in order))
        return self.torchstone_materialise().transpose(*axes) if made is None else made

    @property
    def T(self) -> Any:  # noqa: N802 - numpy's name
        return self.transpose()

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = np.dtype(dtype)
        if not args and not kwargs and (self.dtype.kind in "bui" or wanted.kind == "f"):
            if (made := self._try("astype", "", wanted.str)) is not None:
                return made
        return self.torchstone_materialise().astype(dtype, *args, **kwargs)

    def copy(self, order: Any = "C") -> Any:
        made = self._try("copy", "", order)
        return self.torchstone_materialise().copy(order) if made is None else made

    def snapshot(self) -> Deferred:
        """The same as it is now, whatever is written to this one later."""
        return Deferred(self._base, self._steps, self._session, self._compute)

    def contiguous(self) -> Any:
        """`numpy.ascontiguousarray`: the array itself if it is laid out so, else a copy."""
        made = self._try("contiguous", "", ())
        return np.ascontiguousarray(self.torchstone_materialise()) if made is None else made

    def __float__(self) -> float:
        return float(self.torchstone_materialise())

    def __bool__(self) -> bool:
        return bool(self.torchstone_materialise())

    def __repr__(self) -> str:
        return repr(self.torchstone_materialise())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.torchstone_materialise(), name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """What the program writes to a file is the array."""
        return self.torchstone_materialise().__reduce_ex__(protocol)


def _no_call(name: str) -> Callable[..., Any]:
    raise AssertionError(f"{name} makes no view")


def materialised(value: Any) -> Any:
    """The same with every handle computed."""
    return map_leaves(
        lambda item: item.torchstone_materialise() if type(item) is Deferred else item, value
    )


def _snapshot(operand: Any) -> Any:
    return operand.copy() if isinstance(operand, np.ndarray) else operand
