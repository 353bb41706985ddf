"""What runs outside the kernels: operators of torch and numpy that do the work themselves."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import torch

from torchstone.observe.operators import OperatorMode

MOVES = frozenset(
    "empty empty_like empty_strided new_empty new_empty_strided new_zeros new_ones new_full zeros "
    "zeros_like ones ones_like full full_like fill_ fill zero_ copy_ copy clone _to_copy contiguous detach "
    "alias view _unsafe_view _reshape_alias reshape as_strided expand permute transpose t "
    "unsqueeze squeeze select slice narrow split split_with_sizes unbind diagonal lift_fresh set_ "
    "resize_ arange scalar_tensor constant_pad_nd is_pinned stack cat transpose_ t_ unsqueeze_ "
    "squeeze_ as_strided_ detach_ view_as_real view_as_complex _local_scalar_dense is_same_size "
    "unfold movedim swapaxes ravel lift_fresh_copy lift unsafe_split unsafe_chunk chunk".split()
)
"""Operators that make, move or turn tensors and compute nothing."""
_SCALARS = 16
_NUMPY_MOVES = frozenset(
    "ascontiguousarray asarray array empty_like zeros_like ones_like full_like copyto reshape "
    "transpose ravel concatenate stack expand_dims squeeze swapaxes moveaxis broadcast_to shape "
    "ndim size copy pad shares_memory may_share_memory iscontiguous result_type atleast_1d "
    "atleast_2d asfortranarray can_cast array_split split".split()
)
_METHODS = ("dot", "argmax", "argmin", "sort", "argsort", "cumsum", "cumprod", "take", "choose",
            "partition", "argpartition", "trace", "searchsorted", "tolist", "nonzero")  # fmt: skip


class Pause:
    """While a kernel runs, what it does is its own work."""

    on: bool = False

    def __enter__(self) -> None:
        self.before, Pause.on = Pause.on, True

    def __exit__(self, *_: object) -> None:
        Pause.on = self.before


def note(name: str) -> None:
    """Count something that numpy computed, unless a kernel is running."""
    if not Pause.on:
        Watched.seen[name] += 1


class Operators(OperatorMode):
    """Counts the torch operators that compute."""

    def __init__(self) -> None:
        super().__init__()
        self.computing: Counter[str] = Counter()
        self.scalars = 0

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        name = func._schema.name.rpartition("::")[2]
        if Pause.on:
            pass
        elif name == "_local_scalar_dense":
            self.scalars += 1
            if self.scalars == _SCALARS + 1:
                self.computing["item (element by element)"] += 1
        elif name not in MOVES:
            self.computing[f"torch {name}"] += 1
        return func(*args, **kwargs)


class Foreign:
    """What runs a ufunc that is not numpy's own: a compiled kernel."""

    launched: ClassVar[Callable[..., object] | None] = None


def _is_compiled(ufunc: Any) -> bool:
    """Made by a compiler: no function of numpy's own, and none of Python's, which takes objects."""
    python = any("O" in types for types in ufunc.types)
    return getattr(np, ufunc.__name__, None) is not ufunc and not python


class Watched(np.ndarray[Any, Any]):
    """An array that tells when numpy computes with it; `seen` is shared by all of one call."""

    seen: ClassVar[Counter[str]] = Counter()
    reads: ClassVar[int] = 0

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: object, out: Any = None, **kwargs: Any
    ) -> object:
        if _is_compiled(ufunc) and Foreign.launched is not None:
            return Foreign.launched(ufunc, method, inputs, {**kwargs, "out": out})
        note(f"numpy {ufunc.__name__}")
        if out is not None:
            kwargs["out"] = tuple(plain(item) for item in out)
        return watched(getattr(ufunc, method)(*(plain(item) for item in inputs), **kwargs))

    def __array_function__(self, func: Any, types: object, args: Any, kwargs: Any) -> object:
        if func.__name__ not in _NUMPY_MOVES:
            note(f"numpy {func.__name__}")
        given = [plain_deep(item) for item in args]
        return watched(func(*given, **{k: plain_deep(v) for k, v in kwargs.items()}))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @property
    def flat(self) -> Any:
        note("numpy flat")
        return super().flat

    @property
    def data(self) -> Any:
        note("numpy data")
        return super().data

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, np.ndarray):
            Watched.reads += not Pause.on
            if Watched.reads == _SCALARS + 1:
                note("numpy item (element by element)")
        return found


def _recording(name: str) -> object:
    original = getattr(np.ndarray, name)

    def method(self: object, *args: object, **kwargs: object) -> object:
        note(f"numpy {name}")
        return original(plain(self), *args, **kwargs)

    return method


for _name in _METHODS:
    setattr(Watched, _name, _recording(_name))
# what its author reads of it in an error is what it is in use
Watched.__name__ = Watched.__qualname__ = "ndarray"


def watched(value: object) -> object:
    """An array that is watched; other values as they are."""
    if type(value) is np.ndarray:
        return value.view(Watched)
    if isinstance(value, tuple):
        return tuple(watched(item) for item in value)
    return value


def plain(value: object) -> object:
    """The array itself."""
    return value.view(np.ndarray) if isinstance(value, Watched) else value


def plain_deep(value: object) -> object:
    """The arrays themselves, inside lists and tuples too."""
    if isinstance(value, list | tuple):
        return type(value)(plain_deep(item) for item in value)
    return plain(value)


def start() -> None:
    """Begin to count anew."""
    Watched.seen = Counter()
    Watched.reads = 0


def chance() -> tuple[bytes, bytes, int]:
    """The state of the generators of random numbers: who draws one moves it."""
    kind: Any = np.random.get_state()
    drawn = torch.default_generator.get_state().numpy().tobytes()
    return drawn, kind[1].tobytes(), int(kind[2])


def watch_tensors() -> None:
    """Arrays that are taken from tensors are watched from now on."""
    home: Any = torch.Tensor
    original = home.numpy

    def numpy(self: torch.Tensor, *args: object, **kwargs: object) -> object:
        return watched(original(self, *args, **kwargs))

    home.numpy = numpy
    _watch_elements(home)


def _watch_elements(home: Any) -> None:
    """Elements that are handed to Python: the operators' counter does not see them go."""
    as_list = home.tolist

    def tolist(self: torch.Tensor) -> object:
        # lengths and places are what a host makes sizes of
        if self.numel() > _SCALARS and self.is_floating_point():
            note("torch tolist")
        return as_list(self)

    home.tolist = tolist
    for name in ("apply_", "map_", "map2_"):
        setattr(home, name, _noted(name, getattr(home, name)))


def _noted(name: str, original: Callable[..., object]) -> Callable[..., object]:
    def method(*args: object) -> object:
        note(f"torch {name}")
        return original(*args)

    return method


@contextlib.contextmanager
def arrays_stay_watched() -> Iterator[None]:
    """Copies and other names of a watched array are watched, too, while Python code runs."""

    def keeping(original: Callable[..., object]) -> Callable[..., object]:
        def made(*args: object, **kwargs: object) -> Any:
            found = original(*args, **kwargs)
            return watched(found) if any(isinstance(item, Watched) for item in args) else found

        return made

    with contextlib.ExitStack() as stack:
        for name in _COPIES:
            stack.enter_context(mock.patch.object(np, name, keeping(getattr(np, name))))
        yield


_COPIES = ("array", "asarray", "ascontiguousarray", "asfortranarray")
