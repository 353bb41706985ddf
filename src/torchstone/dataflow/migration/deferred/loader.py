"""What is changed around a DataLoader while a plan is applied."""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info
from torch.utils.data._utils import fetch
from torch.utils.data._utils.collate import default_collate_fn_map

from torchstone.dataflow.migration.deferred.batch import (
    Session,
    collate,
    collate_tensors,
    open_session,
)
from torchstone.dataflow.migration.deferred.handle import Deferred, materialised
from torchstone.dataflow.migration.deferred.sending import Sent, reduced
from torchstone.dataflow.migration.deferred.steps import can_record, step
from torchstone.dataflow.migration.deferred.tensor_handle import (
    DeferredTensor,
    UncomputedTensor,
    tensor_of,
)
from torchstone.dataflow.migration.device_array import DeviceArray, call_on_host
from torchstone.dataflow.migration.patching.bindings import find_changes
from torchstone.dataflow.migration.patching.injector import PatchInjector
from torchstone.dataflow.migration.specification import Arguments
from torchstone.dataflow.migration.targets import Target
from torchstone.dataflow.migration.wrapper import Migration, UniversalWrapper

_ACTIVE = threading.local()
_STANDING_IN = (Deferred, DeviceArray)
_TO_TENSORS = ("from_numpy", "as_tensor", "tensor")
_ARRAY_OF_ARRAY: dict[str, Callable[[Deferred], Any]] = {
    "ascontiguousarray": Deferred.contiguous,
    "asarray": lambda array: array,
    "array": lambda array: array.copy("K"),
}
_FETCHERS = (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher)


def defer_in_loaders(
    injector: PatchInjector, migration: Migration, target: Target, keep: bool, session: str = ""
) -> str:
    """From now on samples that a DataLoader fetches are recorded rather than computed. Gives the
    name of the session that computes them; empty if nothing can be recorded. In a worker,
    `session` names that of the main process."""
    wrappers = {wrapper.func_path: wrapper for wrapper in injector.wrappers}
    if keep or any(can_record(wrapper.spec) for wrapper in wrappers.values()):
        _let_libraries_have_arrays(injector)
    if not any(can_record(wrapper.spec) for wrapper in wrappers.values()):
        return ""
    name = session or uuid.uuid4().hex
    open_session(name, Session(migration, target, wrappers, keep))
    migration.defer = _Recorder(name, wrappers)
    injector.change(lambda: None, lambda: setattr(migration, "defer", None))
    for fetcher in _FETCHERS:
        _change(injector, fetcher, "fetch", _recording(fetcher.fetch))
    _collate(injector, Deferred, collate)
    _collate(injector, DeferredTensor, collate_tensors)
    return name


def _collate(injector: PatchInjector, kind: type, function: Callable[..., Any]) -> None:
    injector.change(
        lambda: default_collate_fn_map.__setitem__(kind, function),
        lambda: default_collate_fn_map.pop(kind, None),
    )


def _let_libraries_have_arrays(injector: PatchInjector) -> None:
    """What takes only real arrays gets them in place of handles and of arrays on the device; what
    makes an array or a tensor of a handle makes another handle."""
    shims: dict[int, tuple[Any, Any]] = {}
    for module, names, make in (
        (torch, _TO_TENSORS, _tensor_or_computed),
        (np, _ARRAY_OF_ARRAY, _array_or_computed),
        (sys.modules.get("cv2"), _plain_functions(sys.modules.get("cv2")), _computing),
    ):
        for name in names:
            before = getattr(module, name)
            shims.setdefault(id(before), (before, make(before)))
            _change(injector, module, name, shims[id(before)][1])

    def replace(value: Any) -> Any:
        function, shim = shims.get(id(value), (None, None))
        return shim if function is value and shim is not None else value

    for change, take_back in list(find_changes(replace)):
        injector.change(change, take_back)


class _Recorder:
    """Records a call, or says that it cannot."""

    def __init__(self, session: str, wrappers: dict[str, UniversalWrapper]) -> None:
        self._session = session
        self._wrappers = wrappers

    def __call__(self, wrapper: UniversalWrapper, bound: Arguments) -> Deferred | None:
        """None outside of a fetch, and for calls that cannot be recorded."""
        if not getattr(_ACTIVE, "fetching", False) or not can_record(wrapper.spec):
            return None
        if bound.get("dst") is not None:
            return None
        data = wrapper.spec.data[0]
        image = bound[data]
        arguments = {name: value for name, value in bound.items() if name not in (data, "dst")}
        try:
            recorded = step("call", wrapper.func_path, arguments)
            if type(image) is not Deferred or not image._steps:
                image = Deferred(np.array(image), (), self._session, self._original)
            return image.recorded(recorded)
        except (TypeError, RuntimeError, NotImplementedError):
            return None

    def _original(self, name: str) -> Callable[..., Any]:
        return self._wrappers[name].original_func


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Calls that the plan moves are recorded inside, in this thread."""
    before = getattr(_ACTIVE, "fetching", False)
    _ACTIVE.fetching = True
    try:
        yield
    finally:
        _ACTIVE.fetching = before


def _recording(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def fetch_recorded(self: Any, index: Any) -> Any:
        with recording():
            data = original(self, index)
        return Sent(data) if get_worker_info() is not None else settled(data)

    return fetch_recorded


def settled(data: Any) -> Any:
    """The same with every handle computed, batches on the device."""
    if isinstance(data, UncomputedTensor) or type(data) is Deferred:
        function, arguments = reduced(data)
        return function(*arguments)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(settled, data))
    if type(data) in (tuple, list, deque):
        return type(data)(map(settled, data))
    if isinstance(data, dict):
        made = copy.copy(data)
        made.update({key: settled(value) for key, value in data.items()})
        return made
    if is_dataclass(data) and not isinstance(data, type):
        for field in fields(data):
            object.__setattr__(data, field.name, settled(getattr(data, field.name)))
    return data


def _computing(original: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that take only real arrays."""

    @functools.wraps(original)
    def computed(*args: Any, **kwargs: Any) -> Any:
        if any(_holds(item) for item in (*args, *kwargs.values())):
            return call_on_host(original, materialised(args), materialised(kwargs))
        return original(*args, **kwargs)

    return computed


def _tensor_or_computed(original: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that make a tensor of an array: of a handle they make one that is recorded."""
    computed = _computing(original)
    copies = original.__name__ == "tensor"

    @functools.wraps(original)
    def made(*args: Any, **kwargs: Any) -> Any:
        if _is_recorded(args) and not kwargs:
            return tensor_of(args[0].copy() if copies else args[0])
        return computed(*args, **kwargs)

    return made


def _array_or_computed(original: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that make an array of an array."""
    computed = _computing(original)
    make = _ARRAY_OF_ARRAY[original.__name__]

    @functools.wraps(original)
    def made(*args: Any, **kwargs: Any) -> Any:
        if _is_recorded(args) and not kwargs:
            return make(args[0])
        return computed(*args, **kwargs)

    return made


def _is_recorded(args: tuple[Any, ...]) -> bool:
    """One handle that a sample is made of, inside of a fetch."""
    return (
        len(args) == 1
        and type(args[0]) is Deferred
        and bool(args[0]._steps)
        and getattr(_ACTIVE, "fetching", False)
    )


def _holds(value: Any) -> bool:
    if type(value) in (tuple, list):
        return any(type(item) in _STANDING_IN for item in value)
    return type(value) in _STANDING_IN


def _plain_functions(module: Any) -> list[str]:
    """Names of the functions of cv2 that are not replaced: they refuse a handle."""
    return [name for name, value in vars(module).items() if type(value) is BuiltinFunctionType] if module else []  # fmt: skip


def _change(injector: PatchInjector, holder: Any, name: str, value: Any) -> None:
    before = vars(holder)[name]
    injector.change(lambda: setattr(holder, name, value), lambda: setattr(holder, name, before))
