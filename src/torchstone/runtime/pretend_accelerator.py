"""A pretend accelerator: tests of device code need no device.

It is torch's private-use backend with kernels in Python. A tensor on it holds its values on the
CPU, but torch sees another device: mixing with CPU tensors is refused, `.numpy()` is refused, and
what crosses over is counted. A clock that only the accelerator moves tells what a real one of the
given rates would need. Faults are injected: a memory that is too small, operators it does not have.

A process has one private-use backend; it is registered at the first use, under the name `pretend`.
Backward passes run in the calling thread: a thread of the autograd engine for this device would run
Python, also while the interpreter ends.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from torchstone.observe.compat.autograd_engine import start_engine
from torchstone.observe.compat.backends import register_python_backend
from torchstone.observe.compat.tensors import make_wrapper_subclass
from torchstone.observe.compat.trees import tree_map

NAME = "pretend"


@dataclass(slots=True)
class Accelerator:
    """Its rates and limits, and what it did."""

    memory_bytes: int = 16 << 30
    bus_bytes_per_second: float = 16e9
    memory_bytes_per_second: float = 1e12
    launch_seconds: float = 5e-6
    missing_operators: frozenset[str] = frozenset()
    """Names as torch has them, such as `aten.sort`."""
    to_device_bytes: int = 0
    to_host_bytes: int = 0
    transfers: int = 0
    operators: int = 0
    seconds: float = 0.0
    """The virtual clock."""
    live_bytes: int = 0
    peak_bytes: int = 0
    operator_names: dict[str, int] = field(default_factory=dict)

    def transferred(self, size: int, to_device: bool) -> None:
        self.transfers += 1
        self.seconds += size / self.bus_bytes_per_second
        if to_device:
            self.to_device_bytes += size
        else:
            self.to_host_bytes += size

    def computed(self, name: str, size: int) -> None:
        self.operators += 1
        self.operator_names[name] = self.operator_names.get(name, 0) + 1
        self.seconds += self.launch_seconds + size / self.memory_bytes_per_second

    def allocate(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        if self.live_bytes + size > self.memory_bytes:
            raise torch.OutOfMemoryError(
                f"{NAME} out of memory. Tried to allocate {size} bytes; {self.live_bytes} of "
                f"{self.memory_bytes} bytes are in use."
            )
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        weakref.finalize(storage, self._free, size)

    def _free(self, size: int) -> None:
        self.live_bytes -= size


_CURRENT = Accelerator()
_REGISTERED = False


class PretendTensor(torch.Tensor):
    """A tensor on the pretend device; `held` has its values."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> PretendTensor:
        made: PretendTensor = make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(NAME, 0),
            requires_grad=held.requires_grad,
        )
        made.held = held
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"tensor({self.held.tolist()!r:.200}, device='{NAME}:0')"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _dispatch(func, args, kwargs or {})


def _name_of(func: Any) -> str:
    return f"{func.namespace}.{func._schema.name.split('::')[-1]}"


def _dispatch(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    name = _name_of(func)
    if name in ("aten._copy_from", "aten.copy_", "aten._to_copy"):
        return _copied(func, name, args, kwargs)
    if name in _CURRENT.missing_operators:
        raise NotImplementedError(f"{name} is not implemented for the {NAME} device")
    _refuse_mixing(name, (args, kwargs))
    kwargs = _on_cpu(kwargs)
    known = _storages(args)
    result = func(*tree_map(_held, args), **tree_map(_held, kwargs))
    _CURRENT.computed(name, _bytes_in(result))
    return _wrapped(result, known)


def _copied(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Across the bus, or on the device."""
    if name == "aten._to_copy":
        (source,) = args
        wanted = kwargs.get("device") or source.device
        plain = {key: value for key, value in kwargs.items() if key not in ("device", "pin_memory")}
        held = func(_held(source), **plain)
        size = held.numel() * held.element_size()
        if torch.device(wanted).type != NAME:
            _CURRENT.transferred(size, to_device=False)
            return held
        if type(source) is not PretendTensor:
            _CURRENT.transferred(size, to_device=True)
        return _made(held)
    target, source = (args[1], args[0]) if name == "aten._copy_from" else (args[0], args[1])
    from_device, to_device = type(source) is PretendTensor, type(target) is PretendTensor
    _held(target).copy_(_held(source))
    if from_device != to_device:
        _CURRENT.transferred(_bytes_in(_held(source)), to_device)
    return target


def _refuse_mixing(name: str, arguments: Any) -> None:
    """A CPU tensor of one element is taken as a number, as on a real device."""

    def check(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and type(value) is not PretendTensor and value.ndim:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:0 and {value.device}! (when checking arguments of {name})"
            )
        return value

    if name not in ("aten.index", "aten.index_put", "aten.index_put_"):  # these take CPU indices
        tree_map(check, arguments)


def _held(value: Any) -> Any:
    return value.held if type(value) is PretendTensor else value


def _on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    device = kwargs.get("device")
    if device is not None and torch.device(device).type == NAME:
        return {**kwargs, "device": torch.device("cpu"), "pin_memory": False}
    return kwargs


def _storages(args: Any) -> dict[int, PretendTensor]:
    found: dict[int, PretendTensor] = {}

    def note(value: Any) -> Any:
        if type(value) is PretendTensor:
            found[id(value.held)] = value
        return value

    tree_map(note, args)
    return found


def _wrapped(result: Any, known: dict[int, PretendTensor]) -> Any:
    """New results are on the device; a result that is an argument (in-place) stays that object."""
    owned = {item.held.untyped_storage()._cdata for item in known.values()}

    def wrap(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in known:
            return known[id(value)]
        return _made(value, value.untyped_storage()._cdata not in owned)

    return tree_map(wrap, result)


def _made(held: torch.Tensor, new: bool = True) -> PretendTensor:
    if new:
        _CURRENT.allocate(held.untyped_storage())
    return PretendTensor(held)


def _bytes_in(value: Any) -> int:
    total = 0

    def add(item: Any) -> Any:
        nonlocal total
        if isinstance(item, torch.Tensor):
            total += item.numel() * item.element_size()
        return item

    tree_map(add, value)
    return total


def _empty(size: Sequence[int], **kwargs: Any) -> PretendTensor:
    return _made(torch.empty(size, dtype=kwargs.get("dtype")))


def _empty_strided(size: Sequence[int], stride: Sequence[int], **kwargs: Any) -> PretendTensor:
    return _made(torch.empty_strided(size, stride, dtype=kwargs.get("dtype")))


def _copy_from(source: torch.Tensor, target: torch.Tensor, *_: Any, **__: Any) -> Any:
    return _copied(None, "aten._copy_from", (source, target), {})


def register() -> None:
    """Once per process. RuntimeError if another backend has taken torch's private-use slot."""
    global _REGISTERED
    if _REGISTERED:
        return
    start_engine()  # before the device is known: the engine then starts no thread for it
    register_python_backend(NAME)
    library = torch.library.Library("aten", "IMPL")
    library.impl("empty.memory_format", _empty, "PrivateUse1")
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    _LIBRARIES.append(library)
    fallthrough = torch.library.Library("_", "IMPL")
    fallthrough.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    _LIBRARIES.append(fallthrough)
    _REGISTERED = True


_LIBRARIES: list[torch.library.Library] = []
"""A library that is collected takes its kernels with it."""


@contextlib.contextmanager
def pretend_accelerator(**settings: Any) -> Iterator[Accelerator]:
    """An accelerator with these settings; counters start at zero."""
    global _CURRENT
    register()
    before, _CURRENT = _CURRENT, Accelerator(**settings)
    try:
        with torch.autograd.set_multithreading_enabled(False):
            yield _CURRENT
    finally:
        _CURRENT = before
