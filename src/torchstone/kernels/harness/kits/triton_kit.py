"""Triton under its interpreter: every access checked, every order of programs possible.

An access outside of the tensors that a launch was given is a fault, and so is a program that reads
or overwrites what another program of the same launch has written: on a device they run at once.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.monitor import Pause
from torchstone.kernels.harness.kits import libdevice_kit, triton_lanes
from torchstone.kernels.harness.kits.triton_lanes import (
    Array,
    Handle,
    LaneRun,
    Lanes,
    batches,
    made_like,
)
from torchstone.kernels.harness.kits.triton_launch import described

BFLOAT16 = "computes in bfloat16, which Triton's interpreter gets wrong"
MOST_TRACKED = 1 << 26
"""Elements of a tensor of which it is known who wrote them, where programs run side by side: four bytes each."""
ELEMENTS_AT_ONCE = 1 << 19
"""Elements of the largest array where programs run side by side: fewer are lost in the
interpreter's own work, more no longer fit into a cache."""


class _Span:
    """One tensor of a launch: its addresses, and which program touched what."""

    def __init__(self, name: str, tensor: torch.Tensor, tracked: bool = True) -> None:
        shape, stride = tensor.shape, tensor.stride()
        last = 0 if 0 in shape else sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        count = 0 if 0 in shape else last + 1
        self.name = name
        self.item = tensor.element_size()
        self.start = tensor.data_ptr()
        self.end = self.start + count * self.item
        self.writer = np.full(count if tracked or count <= MOST_TRACKED else 0, -1, np.int32)
        self.reader = np.full(count if tracked else 0, -1, np.int32)
        size = self.end - self.start
        self.bytes = memoryview((ctypes.c_uint8 * size).from_address(self.start))

    def holds(self, item: int) -> bool:
        """It is made of elements of this size, and has some."""
        return self.end > self.start and item == self.item

    def elements(self, pointers: Array, active: Array, dtype: Any) -> tuple[Array, Array]:
        """The tensor's memory as an array, and the places in it; the first for what is masked."""
        places = (pointers - np.uint64(self.start)) >> np.uint64(dtype.itemsize.bit_length() - 1)
        return np.frombuffer(self.bytes, dtype), np.where(active, places, 0).astype(np.int64)


class Watch:
    """Follows the accesses of the launch that is running."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        self.spans: list[_Span] = []
        self.program = 0
        self.size = (1, 1, 1)
        self.order: list[int] = []
        self.synchronized = False
        self.batch = 0
        """The number of the programs that run side by side."""
        self.lanes = Lanes()
        self.take_back: Callable[[], None] = lambda: None
        """Undoes what programs that run side by side have written."""
        self.largest = 1
        """Elements of the largest access of one program so far."""

    def begin(self, fn: Any, args: Any, kwargs: Any) -> None:
        names = list(inspect.signature(fn).parameters)
        given = dict(zip(names, args, strict=False)) | kwargs
        spans: dict[tuple[int, int], _Span] = {}
        for name, value in given.items():
            value = getattr(value, "base", value) if not isinstance(value, torch.Tensor) else value
            if isinstance(value, torch.Tensor):
                span = _Span(name, value, tracked=not self.launches.side_by_side)
                known = spans.get((span.start, span.end))
                if known is None:
                    spans[span.start, span.end] = span
        self.spans = list(spans.values())
        self.synchronized = False

    def inside(self, pointers: Array, mask: Array, kind: str, values: Array | None = None) -> Array:
        """The mask without the accesses that are outside; faults are noted."""
        self.launches.work += 1
        active: Array = np.broadcast_to(mask, pointers.shape)
        if self.launches.side_by_side:
            self.largest = max(self.largest, pointers.size // self.lanes.count)
            self.synchronized |= kind == "atomic"
            if self.only_tensor(pointers, active) is not None:
                return active
        left = active.copy()
        for span in self.spans:
            hit = left & (pointers >= span.start) & (pointers < span.end)
            if not hit.any():
                continue
            left &= ~hit
            where = ((pointers[hit].astype(np.int64) - span.start) // span.item).astype(np.int64)
            self._touch(span, where, kind, None if values is None else values[hit], pointers[hit])
            if not left.any():
                return active
        if left.any():
            self._outside(pointers[left], kind)
        found: Array = active & ~left
        return found

    def only_tensor(self, pointers: Array, active: Array) -> _Span | None:
        """The tensor in which all accesses lie: all that is asked where programs run side by side."""
        last = np.iinfo(np.uint64)
        low = int(np.min(pointers, where=active, initial=last.max))
        high = int(np.max(pointers, where=active, initial=last.min))
        return next((s for s in self.spans if s.start <= low and high < s.end), None)

    def write(self, span: _Span, memory: Array, places: Array, values: Array) -> None:
        """Write for programs that run side by side; two that write different values are a fault.

        Of one instruction the last value stays, and the others are missed there. What an earlier batch wrote is
        known by its number.
        """
        bits = f"u{values.dtype.itemsize}"
        new = np.ascontiguousarray(values).view(bits)
        known = bool(span.writer.size) and not self.synchronized
        if known:
            others = (span.writer[places] != -1) & (span.writer[places] != self.batch)
            if others.any():
                self._differing(span, int((memory[places].view(bits) != new)[others].sum()))
            span.writer[places] = self.batch
        memory[places] = values
        if not self.synchronized:
            self._differing(span, int((memory[places].view(bits) != new).sum()))

    def _differing(self, span: _Span, count: int) -> None:
        if count:
            self.launches.fault("race: two programs write different values", span.name, count)

    def _outside(self, pointers: Array, kind: str) -> None:
        """Name the tensor next to which the access falls."""
        address = int(pointers.reshape(-1)[0])
        near = min(self.spans, key=lambda s: min(abs(address - s.start), abs(address - s.end)),
                   default=None)  # fmt: skip
        side = "" if near is None else f"{'after' if address >= near.end else 'before'} {near.name}"
        self.launches.fault(f"out-of-bounds {kind}", side, int(pointers.size))

    def _touch(
        self, span: _Span, where: Array, kind: str, values: Array | None, pointers: Array
    ) -> None:
        if self.launches.side_by_side:
            return  # who reads what others write is asked at smaller sizes
        mine = self.program
        if kind != "atomic" and not self.synchronized:
            others = (span.writer[where] != -1) & (span.writer[where] != mine)
            if kind == "read" and others.any():
                self.launches.fault("race: reads what another program writes", span.name,
                                    int(others.sum()))  # fmt: skip
            elif kind == "write":
                if others.any() and values is not None and _differs(pointers, values, others):
                    self.launches.fault("race: two programs write different values", span.name,
                                        int(others.sum()))  # fmt: skip
                read = (span.reader[where] != -1) & (span.reader[where] != mine)
                if read.any():
                    self.launches.fault("race: overwrites what another program reads", span.name,
                                        int(read.sum()))  # fmt: skip
        if kind == "read":
            span.reader[where] = np.where(span.reader[where] == -1, mine, span.reader[where])
        else:
            span.writer[where] = mine
        if kind == "atomic":
            self.synchronized = True


def _differs(pointers: Array, values: Array, others: Array) -> bool:
    """Is what stands in memory other than what is about to be written there?"""
    values = np.ascontiguousarray(values[others])
    size = values.dtype.itemsize
    return any(
        ctypes.string_at(address, size) != value.tobytes()
        for address, value in zip(pointers[others].tolist(), values, strict=True)
    )


def install(launches: Launches, outside: Callable[[], Any]) -> None:
    """Put the checks into the interpreter of this process; `outside` lifts the patches of numpy, whose
    arrays are the registers of the interpreter, no memory of the candidate's."""
    autotuner = importlib.import_module("triton.runtime.autotuner")
    interpreter = importlib.import_module("triton.runtime.interpreter")
    watch = Watch(launches)
    builder: object = interpreter.interpreter_builder
    executor: Any = interpreter.GridExecutor
    run = executor.__call__

    def launch(self: Any, *args: object, **kwargs: object) -> Any:
        launches.launches += 1
        if launches.ghost:
            return None
        # a grid may be a function: what that computes no kernel did
        named, self.grid = _named_and_grid(self, args, kwargs, interpreter)
        with outside(), Pause():
            launches.saw(described(self.fn, self.constexprs, args, kwargs))
            watch.begin(self.fn, args, kwargs)
            launches.recorder.note(self.fn.__name__, args, named, [int(side) for side in self.grid])
            if launches.side_by_side:
                return run_side_by_side(self, args, named, watch)
            return run(self, *args, **kwargs)

    executor.__call__ = launch
    # Times mean nothing here: the first configuration is as good as any.
    autotuner.Autotuner.prune_configs = lambda self, _: self.configs[:1]
    libdevice_kit.install()
    _follow_grid(builder, watch)
    _follow_memory(builder, watch)
    _refuse_bfloat16(builder, interpreter, launches)
    triton_lanes.install(builder, watch.lanes)


def run_side_by_side(executor: Any, args: Any, named: dict[str, Any], watch: Watch) -> None:
    """A launch as the interpreter runs it, with as many programs at once as make arrays worth their while."""
    interpreter = importlib.import_module("triton.runtime.interpreter")
    builder: Any = interpreter.interpreter_builder
    for hook in executor.pre_run_hooks:
        hook(*args, **named)
    scope = interpreter._patch_lang(executor.fn)
    # it would work out whether whole numbers overflow, and drop the answer
    options, builder.options = builder.options, replace(builder.options, sanitize_overflow=False)
    try:
        bound = inspect.getcallargs(executor.fn, *args, **named)
        given = {
            name: value if name in executor.constexprs else interpreter._implicit_cvt(value)
            for name, value in bound.items()
        }
        grid = (*executor.grid, 1, 1)[:3]
        builder.grid_dim = grid
        watch.launches.programs += math.prod(grid)

        def alone(x: int, y: int, z: int) -> None:
            builder.grid_idx = (x, y, z)
            executor.fn(**given)

        side_by_side = LaneRun(lambda: executor.fn(**given), watch.take_back, alone, watch.lanes)
        watch.largest, watch.batch = 1, 0
        if all(grid):
            alone(0, 0, 0)  # shows how large its arrays are
        left = math.prod(grid) - 1
        for places in batches(grid, max(1, ELEMENTS_AT_ONCE // watch.largest)):
            if time.process_time() > watch.launches.until_cpu_seconds:
                watch.launches.left_out += left
                return
            watch.batch += 1
            side_by_side.run(places)
            left -= len(places)
    except Exception as error:
        raise interpreter.InterpreterError(repr(error)) from error
    finally:
        builder.options = options
        scope.restore()


def _named_and_grid(
    executor: Any, args: Any, kwargs: Any, interpreter: Any
) -> tuple[dict[str, object], object]:
    """The arguments that the kernel has a name for, and its grid, as the interpreter works it out."""
    spec = inspect.getfullargspec(executor.fn)
    named = {k: v for k, v in kwargs.items() if k in spec.args or k in spec.kwonlyargs}
    grid = executor.grid
    if callable(grid):
        bound = inspect.getcallargs(executor.fn, *args, **named)
        grid = grid({k: interpreter._implicit_cvt(v) if k not in executor.constexprs else v
                     for k, v in bound.items()})  # fmt: skip
    return named, grid


def _follow_grid(builder: Any, watch: Watch) -> None:
    set_dim, set_index = builder.set_grid_dim, builder.set_grid_idx

    def dimension(x: int, y: int, z: int) -> None:
        watch.size = (x, y, z)
        count = max(0, x) * max(0, y) * max(0, z)
        watch.launches.programs += count
        watch.order = watch.launches.permutation(count)
        set_dim(x, y, z)

    def index(x: int, y: int, z: int) -> None:
        _, ny, nz = watch.size
        number = watch.order[(x * ny + y) * nz + z]
        watch.program = number
        watch.synchronized = False
        set_index(number // (ny * nz), number // nz % ny, number % nz)

    builder.set_grid_dim, builder.set_grid_idx = dimension, index


def _follow_memory(builder: Any, watch: Watch) -> None:
    interpreter = importlib.import_module("triton.runtime.interpreter")
    load, store = builder.create_masked_load, builder.create_masked_store
    cas, rmw = builder.create_atomic_cas, builder.create_atomic_rmw

    def keep(ptrs: Handle, inside: Array) -> None:
        """What is about to be overwritten, as long as it may have to be taken back."""
        if watch.lanes.places is not None:
            old = fetch(ptrs, inside, None, None, False)
            watch.lanes.written.append((ptrs, old, inside))

    def take_back() -> None:
        for ptrs, old, inside in reversed(watch.lanes.written):
            store(ptrs, old, made_like(ptrs, inside, interpreter.tl.int1), None)
        watch.lanes.written.clear()

    watch.take_back = take_back

    def only_tensor(ptrs: Handle, inside: Array, item: int) -> _Span | None:
        """The tensor whose memory numpy may read or write for programs that run side by side."""
        if not watch.launches.side_by_side:
            return None
        span = watch.only_tensor(ptrs.data, inside)
        return span if span is not None and span.holds(item) else None

    def fetch(ptrs: Handle, inside: Array, other: Handle | None, *rest: object) -> Any:
        """As the interpreter loads, and by numpy where programs run side by side."""
        kind = ptrs.get_element_ty()
        dtype = interpreter._get_np_dtype(kind)
        span = only_tensor(ptrs, inside, dtype.itemsize)
        if span is None:
            return load(ptrs, made_like(ptrs, inside, interpreter.tl.int1), other, *rest)
        memory, places = span.elements(ptrs.data, inside, dtype)
        found = memory.take(places)
        empty = np.zeros(1, memory.dtype) if other is None else other.data
        return made_like(
            ptrs, np.where(inside, found, empty).astype(memory.dtype, copy=False), kind
        )

    def put(ptrs: Handle, values: Handle, inside: Array, *rest: object) -> object:
        span = only_tensor(ptrs, inside, values.data.itemsize)
        if span is None:
            return store(ptrs, values, made_like(ptrs, inside, interpreter.tl.int1), *rest)
        memory, places = span.elements(ptrs.data, inside, values.data.dtype)
        watch.write(
            span, memory, places[inside], np.broadcast_to(values.data, places.shape)[inside]
        )
        return None

    def masked_load(
        ptrs: Handle,
        mask: Handle,
        other: Handle,
        cache_policy: object = None,
        is_volatile: object = False,
    ) -> object:
        inside = watch.inside(ptrs.data, mask.data, "read")
        return fetch(ptrs, inside, other, cache_policy, is_volatile)

    def masked_store(ptrs: Handle, value: Handle, mask: Handle, *rest: object) -> object:
        values = np.broadcast_to(value.data, ptrs.data.shape)
        inside = watch.inside(ptrs.data, mask.data, "write", values)
        keep(ptrs, inside)
        return put(ptrs, value, inside, *rest)

    def atomic_rmw(op: object, ptr: Handle, val: Handle, mask: Handle, *rest: object) -> object:
        inside = watch.inside(ptr.data, mask.data, "atomic")
        keep(ptr, inside)
        return rmw(op, ptr, val, made_like(mask, inside, mask.dtype), *rest)

    def atomic_cas(ptr: Handle, *rest: object) -> object:
        inside = watch.inside(ptr.data, np.ones(ptr.data.shape, bool), "atomic")
        if not inside.all():
            raise IndexError("atomic access outside of every tensor")
        return cas(ptr, *rest)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas = atomic_rmw, atomic_cas


def _refuse_bfloat16(builder: object, interpreter: Any, launches: Launches) -> None:
    """Loading, storing and converting bfloat16 is right; computing with it is not."""
    tl = importlib.import_module("triton.language")

    def guarded(original: Any) -> object:
        def call(*args: object, **kwargs: object) -> object:
            launches.work += 1
            for item in args:
                if getattr(getattr(item, "dtype", None), "scalar", None) == tl.bfloat16:
                    raise NotImplementedError(BFLOAT16)
            return original(*args, **kwargs)

        return call

    for name in ("binary_op", "unary_op", "ternary_op", "create_dot", "create_fma"):
        setattr(builder, name, guarded(getattr(builder, name)))
    apply = interpreter.ReduceScanOpInterface.apply

    def reduce(self: object, input: object) -> object:
        for item in input if isinstance(input, tuple) else (input,):
            if getattr(getattr(item, "dtype", None), "scalar", None) == tl.bfloat16:
                raise NotImplementedError(BFLOAT16)
        return apply(self, input)

    interpreter.ReduceScanOpInterface.apply = reduce
