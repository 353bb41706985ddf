"""Triton under its interpreter: every access checked, every order of programs possible.

An access outside of the tensors that a launch was given is a fault, and so is a program that reads
or overwrites what another program of the same launch has written: on a device they run at once.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.monitor import Pause
from torchstone.kernels.harness.kits import libdevice_kit
from torchstone.kernels.harness.kits.triton_launch import described

BFLOAT16 = "computes in bfloat16, which Triton's interpreter gets wrong"


class _Span:
    """One tensor of a launch: its addresses, and which program touched what."""

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        shape, stride = tensor.shape, tensor.stride()
        last = 0 if 0 in shape else sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        count = 0 if 0 in shape else last + 1
        self.name = name
        self.item = tensor.element_size()
        self.start = tensor.data_ptr()
        self.end = self.start + count * self.item
        self.writer = np.full(count, -1, np.int32)
        self.reader = np.full(count, -1, np.int32)


class Watch:
    """Follows the accesses of the launch that is running."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        self.spans: list[_Span] = []
        self.program = 0
        self.size = (1, 1, 1)
        self.order: list[int] = []
        self.synchronized = False

    def begin(self, fn: Any, args: Any, kwargs: Any) -> None:
        names = list(inspect.signature(fn).parameters)
        given = dict(zip(names, args, strict=False)) | kwargs
        spans: dict[tuple[int, int], _Span] = {}
        for name, value in given.items():
            value = getattr(value, "base", value) if not isinstance(value, torch.Tensor) else value
            if isinstance(value, torch.Tensor):
                span = _Span(name, value)
                known = spans.get((span.start, span.end))
                if known is None:
                    spans[span.start, span.end] = span
        self.spans = list(spans.values())

    def inside(self, pointers: Any, mask: Any, kind: str, values: Any = None) -> Any:
        """The mask without the accesses that are outside; faults are noted."""
        self.launches.work += 1
        active = np.broadcast_to(mask, pointers.shape)
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
        return active & ~left

    def _outside(self, pointers: Any, kind: str) -> None:
        """Name the tensor next to which the access falls."""
        address = int(pointers.reshape(-1)[0])
        near = min(self.spans, key=lambda s: min(abs(address - s.start), abs(address - s.end)),
                   default=None)  # fmt: skip
        side = "" if near is None else f"{'after' if address >= near.end else 'before'} {near.name}"
        self.launches.fault(f"out-of-bounds {kind}", side, int(pointers.size))

    def _touch(self, span: _Span, where: Any, kind: str, values: Any, pointers: Any) -> None:
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


def _differs(pointers: Any, values: Any, others: Any) -> bool:
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
    autotuner: Any = importlib.import_module("triton.runtime.autotuner")
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")
    watch = Watch(launches)
    builder: Any = interpreter.interpreter_builder
    executor: Any = interpreter.GridExecutor
    run = executor.__call__

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        launches.launches += 1
        if launches.ghost:
            return None
        # a grid may be a function: what that computes no kernel did
        named, self.grid = _named_and_grid(self, args, kwargs, interpreter)
        with outside(), Pause():
            launches.saw(described(self.fn, self.constexprs, args, kwargs))
            watch.begin(self.fn, args, kwargs)
            launches.recorder.note(self.fn.__name__, args, named, [int(side) for side in self.grid])
            return run(self, *args, **kwargs)

    executor.__call__ = launch
    # Times mean nothing here: the first configuration is as good as any.
    autotuner.Autotuner.prune_configs = lambda self, _: self.configs[:1]
    libdevice_kit.install()
    _follow_grid(builder, watch)
    _follow_memory(builder, watch)
    _refuse_bfloat16(builder, interpreter, launches)


def _named_and_grid(
    executor: Any, args: Any, kwargs: Any, interpreter: Any
) -> tuple[dict[str, Any], Any]:
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
    load, store = builder.create_masked_load, builder.create_masked_store
    cas, rmw = builder.create_atomic_cas, builder.create_atomic_rmw

    def checked(handle: Any, mask: Any) -> Any:
        return type(handle)(mask, handle.dtype)

    def masked_load(ptrs: Any, mask: Any, other: Any, *rest: Any) -> Any:
        return load(ptrs, checked(mask, watch.inside(ptrs.data, mask.data, "read")), other, *rest)

    def masked_store(ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        values = np.broadcast_to(value.data, ptrs.data.shape)
        inside = watch.inside(ptrs.data, mask.data, "write", values)
        return store(ptrs, value, checked(mask, inside), *rest)

    def atomic_rmw(op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        inside = watch.inside(ptr.data, mask.data, "atomic")
        return rmw(op, ptr, val, checked(mask, inside), *rest)

    def atomic_cas(ptr: Any, *rest: Any) -> Any:
        inside = watch.inside(ptr.data, np.ones(ptr.data.shape, bool), "atomic")
        if not inside.all():
            raise IndexError("atomic access outside of every tensor")
        return cas(ptr, *rest)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas = atomic_rmw, atomic_cas


def _refuse_bfloat16(builder: Any, interpreter: Any, launches: Launches) -> None:
    """Loading, storing and converting bfloat16 is right; computing with it is not."""
    tl: Any = importlib.import_module("triton.language")

    def guarded(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            launches.work += 1
            for item in args:
                if getattr(getattr(item, "dtype", None), "scalar", None) == tl.bfloat16:
                    raise NotImplementedError(BFLOAT16)
            return original(*args, **kwargs)

        return call

    for name in ("binary_op", "unary_op", "ternary_op", "create_dot", "create_fma"):
        setattr(builder, name, guarded(getattr(builder, name)))
    apply = interpreter.ReduceScanOpInterface.apply

    def reduce(self: Any, input: Any) -> Any:
        for item in input if isinstance(input, tuple) else (input,):
            if getattr(getattr(item, "dtype", None), "scalar", None) == tl.bfloat16:
                raise NotImplementedError(BFLOAT16)
        return apply(self, input)

    interpreter.ReduceScanOpInterface.apply = reduce
