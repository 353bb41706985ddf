"""What is changed around a DataLoader while a plan is applied."""

from __future__ import annotations

import copy
import functools
import sys
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from torchstone.core.text import Text
from torchstone.dataflow.migration.deferred.batch import (
    Session,
    arrived,
    collate,
    collate_tensors,
    fates_of,
    item_by_originals,
    note_fallback,
    open_session,
)
from torchstone.dataflow.migration.deferred.handle import Deferred, materialised
from torchstone.dataflow.migration.deferred.recording import (
    ACTIVE,
    Made,
    record_or_repeat,
    recording_stream,
)
from torchstone.dataflow.migration.deferred.sending import Sent, reduced
from torchstone.dataflow.migration.deferred.tensor_handle import (
    DeferredTensor,
    UncomputedTensor,
    tensor_of,
)
from torchstone.dataflow.migration.device_array import DeviceArray, call_on_host
from torchstone.dataflow.migration.patching.bindings import find_changes
from torchstone.dataflow.migration.patching.injector import PatchInjector
from torchstone.dataflow.migration.specification import Arguments, Call
from torchstone.dataflow.migration.steps import (
    ITEM,
    Fate,
    RecordedCall,
    Step,
    can_record,
    step,
)
from torchstone.dataflow.migration.targets import Target
from torchstone.dataflow.migration.wrapper import Migration, UniversalWrapper
from torchstone.observe.compat.loaders import IterableFetcher, MapFetcher, default_collate_fn_map
from torchstone.observe.where import PROGRAM

_STANDING_IN = (Deferred, DeviceArray)
_TO_TENSORS = ("from_numpy", "as_tensor", "tensor")
_ARRAY_OF_ARRAY: dict[str, Callable[[Deferred], Any]] = {
    "ascontiguousarray": Deferred.contiguous,
    "asarray": lambda array: array,
    "array": lambda array: array.copy("K"),
}


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
    recorder = migration.defer = _Recorder(name, wrappers, migration)
    injector.change(lambda: None, lambda: setattr(migration, "defer", None))
    samples, stream = MapFetcher, IterableFetcher
    _change(injector, samples, "fetch", _recording_samples(samples.fetch, recorder))
    _change(injector, stream, "__init__", recording_stream(stream.__init__, recorder))
    _change(injector, stream, "fetch", _recording_stream(stream.fetch))
    _collate(injector, Deferred, collate)
    _collate(injector, DeferredTensor, collate_tensors)
    return name


def is_loader_worker() -> bool:
    return get_worker_info() is not None


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
        *((module, _plain_functions(module), _computing) for module in _modules_of_cv2()),
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

    def __init__(
        self, session: str, wrappers: dict[str, UniversalWrapper], migration: Migration
    ) -> None:
        self._session = session
        self._wrappers = wrappers
        self._migration = migration

    def __call__(
        self, wrapper: UniversalWrapper, bound: Arguments, call: Call, line: str
    ) -> Deferred | None:
        """None outside of a fetch, and for calls that cannot be recorded."""
        if not getattr(ACTIVE, "fetching", False) or not can_record(wrapper.spec):
            return None
        if bound.get("dst") is not None:
            return None
        data = wrapper.spec.data[0]
        image = bound[data]
        arguments = {name: value for name, value in bound.items() if name not in (data, "dst")}
        try:
            fate = Fate(line)
            written = RecordedCall(_without_image(call, image), fate)
            recorded = step("call", wrapper.func_path, arguments, written)
            if type(image) is not Deferred or not image._steps:
                image = Deferred(np.array(image), (), self._session, self._compute_early)
            made = image.recorded(recorded)
        except (TypeError, RuntimeError, NotImplementedError):
            return None
        ACTIVE.made.append(Made(self._migration.ledger, wrapper.func_path, fate))
        return made

    def _compute_early(self, base: np.ndarray, steps: tuple[Step, ...]) -> np.ndarray:
        """The program looks at an image before its batch is made: in the main process it is
        computed on the device, alone; in a worker by the original functions."""
        if not self._migration.is_worker():
            calls = [place for place, one in enumerate(steps) if one.recorded is not None]
            upto = calls[-1] + 1 if calls else 0
            value = arrived(self._session, base, steps[:upto], "migrated") if upto else base
            # views behind the last call are made here: strides decide how sums are rounded
            return item_by_originals(self._original, value, steps[upto:])
        reason = Text(
            f"its result is needed in the worker, at {_line_of_user()}",
            f"其结果在工作进程中就被用到（{_line_of_user()}）",
        )
        note_fallback(self._migration.ledger, steps, fates_of(steps), reason, _NEEDED_EARLY)
        return item_by_originals(self._original, base, steps)

    def _original(self, name: str) -> Callable[..., Any]:
        return self._wrappers[name].original_func


_NEEDED_EARLY = Text(
    "let only functions that move, slices and arithmetic follow it in the sample",
    "样本中在其之后只使用可迁移的函数、切片与算术运算",
)


def _without_image(call: Call, image: Any) -> Call:
    args = tuple(ITEM if item is image else item for item in call.args)
    return Call(args, {k: ITEM if item is image else item for k, item in call.kwargs.items()})


def _line_of_user() -> str:
    """The innermost line of the program that is running."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not PROGRAM.is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


def _recording_samples(original: Callable[..., Any], recorder: _Recorder) -> Callable[..., Any]:
    @functools.wraps(original)
    def fetch_recorded(self: Any, index: Any) -> Any:
        return _sent(record_or_repeat(lambda: original(self, index), recorder))

    return fetch_recorded


def _recording_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    """Items of a stream are recorded one by one, by what its fetcher was made with."""

    @functools.wraps(original)
    def fetch_recorded(self: Any, index: Any) -> Any:
        return _sent(original(self, index))

    return fetch_recorded


def _sent(data: Any) -> Any:
    return Sent(data) if is_loader_worker() else settled(data)


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
        and getattr(ACTIVE, "fetching", False)
    )


def _holds(value: Any) -> bool:
    if type(value) in (tuple, list):
        return any(type(item) in _STANDING_IN for item in value)
    return type(value) in _STANDING_IN


def _modules_of_cv2() -> list[ModuleType]:
    return [m for name, m in list(sys.modules.items()) if name == "cv2" or name.startswith("cv2.")]


def _plain_functions(module: Any) -> list[str]:
    """Names of the functions of cv2 that are not replaced: they refuse a handle."""
    return [name for name, value in vars(module).items() if type(value) is BuiltinFunctionType]


def _change(injector: PatchInjector, holder: Any, name: str, value: Any) -> None:
    before = vars(holder)[name]
    injector.change(lambda: setattr(holder, name, value), lambda: setattr(holder, name, before))
