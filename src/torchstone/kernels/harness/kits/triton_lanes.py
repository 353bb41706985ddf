"""Many programs of one Triton launch at once: the interpreter's arrays get an axis of programs in front.

An interpreter takes tens of microseconds for an operation, however small its arrays are. A launch at a problem's
own size has more programs than there is time for one after the other; side by side they cost what their elements
cost. A handle whose first axis is one of programs is marked; unmarked ones are the same for all programs. Where
programs would take different ways (a condition, the length of a loop), what they wrote is taken back and each
group goes its own way.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_MARK = "torchstone.programs"
_ELEMENTWISE = (
    "binary_op", "unary_op", "ternary_op", "cast_impl", "create_fp_to_fp", "create_bitcast", "create_idiv",
    "create_ashr", "create_umulhi", "create_fma", "create_fabs", "create_erf", "create_rsqrt", "create_addptr",
    "create_clampf", "create_dot",
)  # fmt: skip
"""Methods of the interpreter that take arrays of one rank element by element; numpy multiplies stacks of matrices."""
_ONE_BY_ONE = (
    "create_histogram", "create_dot_scaled", "create_atomic_cas", "create_atomic_poll", "create_descriptor_gather",
    "create_descriptor_scatter", "create_print",
)  # fmt: skip
"""Methods that programs call one after the other: they lock, wait, print, or have no form for stacks."""

Array = NDArray[Any]


class Handle(Protocol):
    """A `TensorHandle` of Triton's interpreter."""

    data: Array
    dtype: object

    def get_element_ty(self) -> object: ...


def made_like(handle: Handle, data: Array, dtype: object) -> Handle:
    """A handle of the same class."""
    kind: Any = type(handle)
    found: Handle = kind(data, dtype)
    return found


class DivergedError(Exception):
    """Programs that run side by side would take different ways; `values` decides, one for each program."""

    def __init__(self, values: Array) -> None:
        super().__init__("programs take different ways")
        self.values = values


class OneByOneError(Exception):
    """Something that is not done for several programs at once."""


@dataclass(slots=True)
class Lanes:
    """The programs that run side by side, and what they wrote so far."""

    places: Array | None = None
    """A column for each axis of the grid, a row for each program; None while they run one by one."""
    written: list[tuple[Handle, Handle, Array]] = field(default_factory=list)
    """Pointers, what stood there, and which of them were written."""

    @property
    def count(self) -> int:
        return 1 if self.places is None else len(self.places)


def is_marked(handle: Handle) -> bool:
    return isinstance(handle, _handle_type()) and _MARK in handle.attr


@functools.cache
def _handle_type() -> Any:
    return importlib.import_module("triton.runtime.interpreter").TensorHandle


def _marked(data: Array, dtype: object) -> Handle:
    found: Handle = _handle_type()(data, dtype, {_MARK: True})
    return found


def _side_by_side(handles: Sequence[Handle]) -> list[Handle]:
    """Plain handles whose arrays all have the axis of programs, and one rank."""
    ranks = [item.data.ndim - is_marked(item) for item in handles]
    rank = max(ranks)
    plain = _handle_type()
    found = []
    for item, own in zip(handles, ranks, strict=True):
        data = item.data if is_marked(item) else item.data[None]
        shape = (data.shape[0], *(1,) * (rank - own), *data.shape[1:])
        found.append(plain(data.reshape(shape), item.dtype))
    return found


def _of_one_shape(handles: Sequence[Handle]) -> list[Handle]:
    aligned = _side_by_side(handles)
    shape = np.broadcast_shapes(*(item.data.shape for item in aligned))
    plain = _handle_type()
    return [plain(np.broadcast_to(item.data, shape), item.dtype) for item in aligned]


def install(builder: object, lanes: Lanes) -> None:
    """Teach the interpreter of this process to run several programs at once."""
    for name in _ELEMENTWISE:
        setattr(builder, name, _elementwise(getattr(builder, name)))
    for name in _ONE_BY_ONE:
        if hasattr(builder, name):
            setattr(builder, name, _one_by_one(getattr(builder, name), lanes))
    for name, make in _SHAPES.items():
        setattr(builder, name, _reshaping(getattr(builder, name), make))
    _follow_memory(builder)
    _follow_programs(builder, lanes)
    _follow_python()
    _follow_reductions()


def _elementwise(original: Callable[..., Any]) -> Callable[..., object]:
    def call(*args: Any) -> object:
        if not any(map(is_marked, args)):
            return original(*args)
        handles = iter(_side_by_side([item for item in args if isinstance(item, _handle_type())]))
        found = original(
            *(next(handles) if isinstance(item, _handle_type()) else item for item in args)
        )
        return _marked(found.data, found.dtype)

    return call


def _one_by_one(original: Callable[..., object], lanes: Lanes) -> Callable[..., object]:
    def call(*args: object, **kwargs: object) -> object:
        if lanes.places is not None:
            raise OneByOneError
        return original(*args, **kwargs)

    return call


def _reshaping(
    original: Callable[..., object], make: Callable[..., Array]
) -> Callable[..., object]:
    def call(*args: object) -> object:
        handles = [item for item in args if isinstance(item, _handle_type())]
        if not any(map(is_marked, handles)):
            return original(*args)
        arrays = [item.data if is_marked(item) else item.data[None] for item in handles]
        rest = [item for item in args if not isinstance(item, _handle_type())]
        return _marked(make(*arrays, *rest), handles[0].dtype.scalar)

    return call


def _broadcast(data: Array, shape: Sequence[int]) -> Array:
    ones = (1,) * (len(shape) - data.ndim + 1)
    return np.broadcast_to(data.reshape(len(data), *ones, *data.shape[1:]), (len(data), *shape))


def _joined(left: Array, right: Array) -> tuple[Array, Array]:
    shape = np.broadcast_shapes(left.shape[:1], right.shape[:1])
    return (np.broadcast_to(left, shape + left.shape[1:]),
            np.broadcast_to(right, shape + right.shape[1:]))  # fmt: skip


_SHAPES: dict[str, Callable[..., Array]] = {
    "create_reshape": lambda data, shape, _: data.reshape(len(data), *shape),
    "create_trans": lambda data, perm: np.transpose(data, (0, *(place + 1 for place in perm))),
    "create_expand_dims": lambda data, axis: np.expand_dims(data, axis + 1 if axis >= 0 else axis),
    "create_broadcast": _broadcast,
    "create_splat": lambda data, kind: _broadcast(data, kind.shape),
    "create_unsplat": lambda data: data.reshape(len(data), -1)[:, :1],
    "create_cat": lambda left, right: np.concatenate(_joined(left, right), axis=1),
    "create_join": lambda left, right: np.stack(_joined(left, right), axis=-1),
    "create_gather": lambda data, places, axis: np.take_along_axis(
        *_joined(data, places), axis=axis + 1 if axis >= 0 else axis
    ),
}
"""Methods that move elements, with the axis of programs in front."""


def _follow_memory(builder: Any) -> None:
    load, store, rmw = (
        builder.create_masked_load, builder.create_masked_store, builder.create_atomic_rmw,
    )  # fmt: skip
    split = builder.create_split

    def everywhere(pointers: Handle) -> Handle:
        ones = np.ones(pointers.data.shape, bool)
        tl = importlib.import_module("triton.language")
        return _marked(ones, tl.int1) if is_marked(pointers) else _handle_type()(ones, tl.int1)

    def masked_load(
        ptrs: Handle,
        mask: Handle,
        other: Handle | None,
        cache_policy: object = None,
        is_volatile: object = False,
    ) -> object:
        rest = (cache_policy, is_volatile)
        given = [item for item in (ptrs, mask, other) if item is not None]
        if not any(map(is_marked, given)):
            return load(ptrs, mask, other, *rest)
        plain = _of_one_shape(given)
        found = load(plain[0], plain[1], plain[2] if other is not None else None, *rest)
        return _marked(found.data, found.dtype)

    def masked_store(ptrs: Handle, value: Handle, mask: Handle, *rest: object) -> object:
        given = [ptrs, value, mask]
        if any(map(is_marked, given)):
            given = _of_one_shape(given)
        return store(*given, *rest)

    def atomic_rmw(op: object, ptr: Handle, val: Handle, mask: Handle, *rest: object) -> object:
        if not any(map(is_marked, (ptr, val, mask))):
            return rmw(op, ptr, val, mask, *rest)
        found = rmw(op, *_of_one_shape((ptr, val, mask)), *rest)
        return _marked(found.data, found.dtype)

    def split_in_two(value: Handle) -> tuple[Handle, ...]:
        parts = split(value)
        return tuple(_marked(p.data, p.dtype) for p in parts) if is_marked(value) else parts

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_split = atomic_rmw, split_in_two
    builder.create_load = lambda ptr, *rest: masked_load(ptr, everywhere(ptr), None, *rest)
    builder.create_store = lambda ptr, val, *rest: masked_store(ptr, val, everywhere(ptr), *rest)


def _follow_programs(builder: Any, lanes: Lanes) -> None:
    program_id = builder.create_get_program_id
    tl = importlib.import_module("triton.language")

    def places(axis: int) -> object:
        if lanes.places is None:
            return program_id(axis)
        return _marked(lanes.places[:, axis : axis + 1].astype(np.int32), tl.int32)

    builder.create_get_program_id = places
    describe = builder.create_make_tensor_descriptor

    def described(
        base: Handle, shape: list[Handle], strides: list[Handle], *rest: object
    ) -> object:
        if any(map(is_marked, (base, *shape, *strides))):
            raise OneByOneError
        return describe(base, shape, strides, *rest)

    builder.create_make_tensor_descriptor = described
    handle: Any = importlib.import_module("triton.runtime.interpreter").TensorDescHandle
    materialize = handle.materialize_pointers

    def pointers(self: object, offsets: list[Handle]) -> tuple[Handle, Handle]:
        if not any(map(is_marked, offsets)):
            found: tuple[Handle, Handle] = materialize(self, offsets)
            return found
        return _descriptor_pointers(self, offsets)

    handle.materialize_pointers = pointers


def _descriptor_pointers(descriptor: Any, offsets: list[Handle]) -> tuple[Handle, Handle]:
    """Where a block of a described tensor lies for each program, and which of it is inside."""
    tl = importlib.import_module("triton.language")
    shape = descriptor.block_shape
    item = descriptor.base.dtype.element_ty.primitive_bitwidth // 8
    found: Array = descriptor.base.data.reshape(1, *(1,) * len(shape))
    inside: Array = np.ones((1, *(1,) * len(shape)), bool)
    for axis, offset in enumerate(_side_by_side(offsets)):
        along = [1] * len(shape)
        along[axis] = shape[axis]
        start = offset.data.reshape(len(offset.data), *(1,) * len(shape))
        place = start + np.arange(shape[axis]).reshape(1, *along)
        found = found + (item * place * descriptor.strides[axis].data).astype(np.uint64)
        inside = inside & (place >= 0) & (place < descriptor.shape[axis].data)
    return _marked(found, descriptor.base.dtype.scalar), _marked(
        np.broadcast_to(inside, np.broadcast_shapes(inside.shape, found.shape)), tl.int1
    )


def one_value(handle: Handle) -> Any:
    """The value that all programs have; a DivergedError where they differ."""
    values = handle.data.reshape(len(handle.data), -1)
    if not is_marked(handle) or (values[:, 0] == values[0, 0]).all():
        return values[0, 0]
    raise DivergedError(values[:, 0])


def _follow_python() -> None:
    """Conditions and loops of Python ask tensors for their value."""
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")
    patch_tensor, patch_core = interpreter._patch_lang_tensor, interpreter._patch_lang_core

    def is_true(tensor: Any) -> bool:
        size = tensor.handle.data.size
        alone = size == (len(tensor.handle.data) if is_marked(tensor.handle) else 1)
        return bool(one_value(tensor.handle)) if alone else True

    def transposed(tensor: Any) -> object:
        shape = list(tensor.type.shape)
        shape[-1], shape[-2] = shape[-2], shape[-1]
        data = np.swapaxes(tensor.handle.data, -1, -2)
        kind = interpreter.tl.core.block_type(tensor.dtype, shape)
        made = _marked if is_marked(tensor.handle) else interpreter.TensorHandle
        return interpreter.tl.core.tensor(made(data, tensor.handle.dtype), kind)

    def patched_tensor(tensor: object, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(one_value(self.handle)))
        scope.set_attr(tensor, "__bool__", is_true)
        scope.set_attr(tensor, "T", property(transposed))

    def patched_core(lang: object, scope: Any) -> None:
        patch_core(lang, scope)
        for name in ("range", "static_range"):
            scope.set_attr(lang, name, loop)

    def loop(first: object, second: object = None, step: object = 1, **_: object) -> object:
        start, end = (0, first) if second is None else (first, second)
        return steps(interpreter.tl, start, end, 1 if step is None else step)

    interpreter._patch_lang_tensor, interpreter._patch_lang_core = patched_tensor, patched_core
    interpreter.range = lambda *given: loop(*given)


def steps(tl: Any, start: Any, end: Any, step: Any) -> object:
    """A `range` whose ends may differ between programs, as long as all go round equally often."""
    ends = [item.handle if isinstance(item, tl.tensor) else None for item in (start, end, step)]
    if not any(item is not None and is_marked(item) for item in ends):
        return range(start, end, step)
    first, last, by = (
        np.asarray(item).reshape(1) if known is None else known.data.reshape(len(known.data))
        for item, known in zip((start, end, step), ends, strict=True)
    )
    rounds = np.maximum(0, -((first.astype(np.int64) - last) // by))
    if (rounds != rounds[0]).any():
        raise DivergedError(rounds)
    return _rounds(tl, first, by, int(rounds[0]))


def _rounds(tl: Any, first: Array, by: Array, count: int) -> Iterator[object]:
    for number in range(count):
        values = (first + number * by).astype(np.int32)
        yield tl.tensor(_marked(values.reshape(-1, 1), tl.int32), tl.int32)


def _follow_reductions() -> None:
    interpreter = importlib.import_module("triton.runtime.interpreter")
    standard: Any = interpreter.tl.standard
    family = interpreter.ReduceScanOpInterface
    apply = family.apply
    known = {
        standard._sum_combine: (np.sum,), standard._elementwise_max: (np.nanmax,),
        standard._elementwise_min: (np.nanmin,),
        standard._argmax_combine_tie_break_left: (np.nanmax, np.nanargmax),
        standard._argmax_combine_tie_break_fast: (np.nanmax, np.nanargmax),
        standard._argmin_combine_tie_break_left: (np.nanmin, np.nanargmin),
        standard._argmin_combine_tie_break_fast: (np.nanmin, np.nanargmin),
    }  # fmt: skip

    def applied(self: Any, given: object) -> object:
        inputs = given if isinstance(given, tuple) else (given,)
        if not any(is_marked(item.handle) for item in inputs):
            return apply(self, given)
        if isinstance(self, interpreter.ScanOps):
            found = _scanned(self, inputs)
        else:
            found = _reduced(self, inputs, known.get(self.combine_fn))
        return found if isinstance(given, tuple) else found[0]

    family.apply = applied


def _tensor(data: Array, dtype: object) -> Any:
    """A tensor of Triton from an array of programs; one number each is a scalar."""
    tl = importlib.import_module("triton.language")
    numpy_type = importlib.import_module("triton.runtime.interpreter")._get_np_dtype(dtype)
    shape = list(data.shape[1:])
    kind = tl.block_type(dtype, shape) if shape else dtype
    return tl.tensor(
        _marked(data.reshape(len(data), *(shape or [1])).astype(numpy_type), dtype), kind
    )


def _reduced(operation: Any, inputs: Sequence[Any], known: Any) -> tuple[object, ...]:
    tl = importlib.import_module("triton.language")
    arrays = [item.data for item in _of_one_shape([item.handle for item in inputs])]
    axis = operation.axis
    if axis is None:
        arrays = [item.reshape(len(item), -1) for item in arrays]
    along = 1 if axis is None else axis + 1 if axis >= 0 else axis
    if known is not None:
        found = [function(arrays[0], axis=along) for function in known]
        types = [inputs[0].dtype, tl.int32][: len(known)]
    else:
        found = _combined(operation, [np.moveaxis(item, along, 0) for item in arrays], inputs)[-1]
        types = [item.dtype for item in inputs]
    if operation.keep_dims:
        rank = inputs[0].handle.data.ndim - is_marked(inputs[0].handle)
        found = [
            item.reshape(len(item), *(1,) * rank) if axis is None else np.expand_dims(item, along)
            for item in found
        ]
    return tuple(map(_tensor, found, types))


def _combined(operation: Any, parts: list[Array], inputs: Sequence[Any]) -> list[list[Array]]:
    """What stands after each step along the first axis, by the candidate's own function."""
    so_far = [item[0] for item in parts]
    every = [so_far]
    for number in range(1, len(parts[0])):
        left = [_tensor(item, tensor.dtype) for item, tensor in zip(so_far, inputs, strict=True)]
        right = [
            _tensor(item[number], tensor.dtype) for item, tensor in zip(parts, inputs, strict=True)
        ]
        found = operation.combine_fn.fn(*left, *right)
        found = found if isinstance(found, tuple) else (found,)
        so_far = [
            np.broadcast_to(item.handle.data.reshape(-1, *old.shape[1:]), old.shape)
            for item, old in zip(found, so_far, strict=True)
        ]
        every.append(so_far)
    return every


def _scanned(operation: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    arrays = [item.data for item in _of_one_shape([item.handle for item in inputs])]
    along = operation.axis + 1 if operation.axis >= 0 else operation.axis
    parts = [np.moveaxis(item, along, 0) for item in arrays]
    if operation.reverse:
        parts = [item[::-1] for item in parts]
    every = _combined(operation, parts, inputs)
    whole = [np.stack([step[i] for step in every]) for i in range(len(inputs))]
    if operation.reverse:
        whole = [item[::-1] for item in whole]
    moved = [np.moveaxis(item, 0, along) for item in whole]
    return tuple(_tensor(item, tensor.dtype) for item, tensor in zip(moved, inputs, strict=True))


@dataclass(slots=True)
class LaneRun:
    """One launch whose programs run side by side."""

    program: Callable[[], None]
    """Runs the programs that `lanes` holds."""
    take_back: Callable[[], None]
    """Undoes what they wrote."""
    alone: Callable[[int, int, int], None]
    """Runs one program."""
    lanes: Lanes
    one_by_one: bool = False
    """This kernel does something that is not done for several programs at once."""

    def run(self, places: Array) -> None:
        """All of these programs, in as few groups as they allow."""
        if len(places) == 1 or self.one_by_one:
            for place in places.tolist():
                self.alone(*place)
            return
        try:
            with self._side_by_side(places):
                self.program()
        except DivergedError as error:
            self.take_back()
            for value in np.unique(error.values):
                self.run(places[error.values == value])
        except Exception:
            # an error of the kernel is raised again by the program that makes it
            self.take_back()
            self.one_by_one = True
            self.run(places)

    @contextmanager
    def _side_by_side(self, places: Array) -> Iterator[None]:
        self.lanes.places = places
        self.lanes.written = []
        try:
            yield
        finally:
            self.lanes.places = None


def batches(grid: tuple[int, int, int], size: int) -> Iterator[Array]:
    """Places in the grid after the first, so many at a time, in an order that comes everywhere early."""
    count = math.prod(grid)
    starts = list(range(1, count, size))
    # the last one, and from then on always the middle of what is left
    last = len(starts) - 1
    order = sorted(range(len(starts)), key=lambda it: (it != last, _halvings(it, len(starts)), it))
    for number in order:
        flat = np.arange(starts[number], min(starts[number] + size, count))
        yield np.stack(np.unravel_index(flat, grid), axis=1)


def _halvings(number: int, count: int) -> int:
    """How often a range must be halved until this number is a border."""
    return max(count - 1, 1).bit_length() - (number & -number).bit_length()
