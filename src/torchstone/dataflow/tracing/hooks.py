"""The functions that stand at the sites while a program is traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from torchstone.dataflow.tracing.recorder import Event, Recorder
from torchstone.dataflow.tracing.sites import FunctionSites, Site
from torchstone.dataflow.tracing.values import CONTAINER, SCALAR, is_constant

Hook = Callable[..., Any]
TOUCHED = -(1 << 62)
"""The quiet count of a function that met data: it never reaches the limit."""

_PLAIN = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod, "Pow": operator.pow,
    "MatMult": operator.matmul, "LShift": operator.lshift, "RShift": operator.rshift,
    "BitOr": operator.or_, "BitXor": operator.xor, "BitAnd": operator.and_,
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
    "Eq": operator.eq, "NotEq": operator.ne,
    "USub": operator.neg, "Invert": operator.invert,
}  # fmt: skip
_IN_PLACE = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow,
    "MatMult": operator.imatmul, "LShift": operator.ilshift, "RShift": operator.irshift,
    "BitOr": operator.ior, "BitXor": operator.ixor, "BitAnd": operator.iand,
}  # fmt: skip


def make_hook(
    site: Site, owner: FunctionSites, recorder: Recorder, shed: Callable[[FunctionSites], None]
) -> Hook:
    """The function for one site."""
    if site.kind == "call":
        return _call_hook(site, owner, recorder, shed)
    if site.kind in ("binary", "compare"):
        return _binary_hook(site, owner, recorder, shed, _PLAIN[site.op])
    if site.kind == "update":
        return _binary_hook(site, owner, recorder, shed, _IN_PLACE[site.op])
    if site.kind == "item":
        return _binary_hook(site, owner, recorder, shed, operator.getitem)
    if site.kind == "unary":
        return _unary_hook(site, owner, recorder, shed, _PLAIN[site.op])
    if site.kind == "attribute":
        return _unary_hook(site, owner, recorder, shed, operator.attrgetter(site.op))
    if site.kind == "set":
        return _set_hook(site, owner, recorder)
    return _update_item_hook(site, owner, recorder, _IN_PLACE[site.op])


def _call_hook(
    site: Site, owner: FunctionSites, recorder: Recorder, shed: Callable[[FunctionSites], None]
) -> Hook:
    values = recorder.values
    kinds, kind_of, read = values.kinds, values.kind_of, values.read
    states, state_of, next_number = recorder.states, recorder.state, values.next_number
    callee_of = recorder.callees.of
    names = (*site.inputs, *("" for _ in range(32)))
    receiver_name = names[0]

    def call(func: Any, /, *args: Any, **kwargs: Any) -> Any:
        state = states.get(get_ident()) or state_of()
        if state.depth >= recorder.limit:
            return func(*args, **kwargs)
        reads: list[int] = []
        cls = type(func)
        inputs = args
        if cls is BuiltinFunctionType or cls is MethodType:
            receiver = func.__self__
            if receiver is not None and type(receiver) is not ModuleType:
                kind = kinds.get(type(receiver))
                if kind is None:
                    kind = kind_of(type(receiver))
                inputs = (receiver, *args)
                if kind and kind != CONTAINER:
                    read(receiver, kind, receiver_name, reads)
        place = 0
        for item in args:
            place += 1
            kind = kinds.get(type(item))
            if kind is None:
                kind = kind_of(type(item))
            if kind:
                read(item, kind, names[place] if place < 32 else "", reads)
        if kwargs:
            for item in kwargs.values():
                place += 1
                kind = kind_of(type(item))
                if kind:
                    read(item, kind, names[place] if place < 32 else "", reads)
        events = state.events
        index = len(events)
        events.append(None)
        parent = state.current
        state.current = index
        state.depth += 1
        number = next_number()
        start = perf_counter_ns()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            end = perf_counter_ns()
            state.current = parent
            state.depth -= 1
            recorder.close_failed(state, index, Event(
                site, callee_of(func), parent, start, end, tuple(reads), (),
                error=type(error).__name__))
            raise
        end = perf_counter_ns()
        state.current = parent
        state.depth -= 1
        kind = kinds.get(type(result))
        if kind is None:
            kind = kind_of(type(result))
        if not reads and not kind and len(events) == index + 1:
            events.pop()
            owner.quiet += 1
            if owner.quiet > recorder.quiet_limit:
                shed(owner)
            return result
        callee = callee_of(func)
        makes, returns = recorder.made_by(result, site, callee, reads, inputs, kwargs, number)
        if len(events) == index + 1 and recorder.is_idle(callee, func, reads, makes, returns):
            events.pop()
            return result
        owner.quiet = TOUCHED
        events[index] = Event(
            site, callee, parent, start, end, tuple(reads), tuple(makes), tuple(returns),
            tuple([item for item in args if is_constant(item)]),
            "", recorder.message_key(callee, args, result) if callee.transport else None,
        )
        if callee.transport == "put" and recorder.after_message is not None:
            recorder.after_message()
        elif index > recorder.max_events:
            recorder.overflow()
        return result

    return call


def _binary_hook(
    site: Site,
    owner: FunctionSites,
    recorder: Recorder,
    shed: Callable[[FunctionSites], None],
    operate: Callable[[Any, Any], Any],
) -> Hook:
    values = recorder.values
    kinds, kind_of, read = values.kinds, values.kind_of, values.read
    states, state_of, next_number = recorder.states, recorder.state, values.next_number
    left_name, right_name = site.inputs
    in_place = site.kind == "update"
    own_item = _own_item_hook(site, owner, recorder, shed) if site.kind == "item" else None

    def binary(left: Any, right: Any, /) -> Any:
        kind = kinds.get(type(left))
        if kind is None:
            kind = kind_of(type(left))
        other = kinds.get(type(right))
        if other is None:
            other = kind_of(type(right))
        if (not kind or kind == CONTAINER) and (not other or other == CONTAINER):
            if own_item is not None and not kind:
                return own_item(left, right)
            owner.quiet += 1
            if owner.quiet > recorder.quiet_limit:
                shed(owner)
            return operate(left, right)
        state = states.get(get_ident()) or state_of()
        if state.depth >= recorder.limit:
            return operate(left, right)
        reads: list[int] = []
        if kind:
            read(left, kind, left_name, reads)
        if other:
            read(right, other, right_name, reads)
        if not reads:
            owner.quiet += 1
            if owner.quiet > recorder.quiet_limit:
                shed(owner)
            return operate(left, right)
        number = next_number()
        start = perf_counter_ns()
        result = operate(left, right)
        end = perf_counter_ns()
        if in_place and result is left and kind and kind < SCALAR:
            makes, returns = [values.write(left, kind, left_name, reads)], NO_VALUES
        else:
            makes, returns = recorder.made_by(
                result, site, None, reads, (left, right), NO_KEYWORDS, number
            )
        if not makes:
            return result
        owner.quiet = TOUCHED
        constants = (right,) if is_constant(right) else (left,) if is_constant(left) else ()
        if own_item is not None and not constants:
            constants = (_index_text(right),)
        state.events.append(
            Event(
                site, None, state.current, start, end, tuple(reads), tuple(makes), tuple(returns),
                constants,
            )  # fmt: skip
        )
        return result

    return binary


def _own_item_hook(
    site: Site, owner: FunctionSites, recorder: Recorder, shed: Callable[[FunctionSites], None]
) -> Hook:
    """`dataset[index]`: an object whose class says in Python what its items are is called."""
    call = _call_hook(site, owner, recorder, shed)

    def own_item(left: Any, right: Any, /) -> Any:
        method = getattr(type(left), "__getitem__", None)
        if type(method) is FunctionType:
            return call(MethodType(method, left), right)
        return left[right]

    return own_item


def _unary_hook(
    site: Site,
    owner: FunctionSites,
    recorder: Recorder,
    shed: Callable[[FunctionSites], None],
    operate: Callable[[Any], Any],
) -> Hook:
    values = recorder.values
    (name,) = site.inputs

    def unary(operand: Any, /) -> Any:
        kind = values.kind_of(type(operand))
        state = recorder.state()
        reads: list[int] = []
        if kind and kind != CONTAINER and state.depth < recorder.limit:
            values.read(operand, kind, name, reads)
        if not reads:
            owner.quiet += 1
            if owner.quiet > recorder.quiet_limit:
                shed(owner)
            return operate(operand)
        number = values.next_number()
        start = perf_counter_ns()
        result = operate(operand)
        end = perf_counter_ns()
        makes, returns = recorder.made_by(
            result, site, None, reads, (operand,), NO_KEYWORDS, number
        )
        if makes:
            owner.quiet = TOUCHED
            state.events.append(
                Event(site, None, state.current, start, end, tuple(reads), tuple(makes), tuple(returns))
            )
        return result

    return unary


def _set_hook(site: Site, owner: FunctionSites, recorder: Recorder) -> Hook:
    def assign(value: Any, target: Any, index: Any, /) -> None:
        kind = recorder.values.kind_of(type(target))
        if not kind or kind >= SCALAR:
            target[index] = value
            return
        _write_item(recorder, site, owner, target, kind, index, value, operator.setitem)

    return assign


def _update_item_hook(
    site: Site, owner: FunctionSites, recorder: Recorder, operate: Callable[[Any, Any], Any]
) -> Hook:
    def setitem(target: Any, index: Any, value: Any) -> None:
        target[index] = operate(target[index], value)

    def update(target: Any, index: Any, value: Any, /) -> None:
        kind = recorder.values.kind_of(type(target))
        if not kind or kind >= SCALAR:
            setitem(target, index, value)
            return
        _write_item(recorder, site, owner, target, kind, index, value, setitem)

    return update


def _write_item(
    recorder: Recorder,
    site: Site,
    owner: FunctionSites,
    target: Any,
    kind: int,
    index: Any,
    value: Any,
    write: Callable[[Any, Any, Any], None],
) -> None:
    values = recorder.values
    state = recorder.state()
    if state.depth >= recorder.limit:
        write(target, index, value)
        return
    reads: list[int] = []
    values.read(target, kind, site.targets[0] if site.targets else "", reads)
    held = list(reads)
    for item in (value, index):
        item_kind = values.kind_of(type(item))
        if item_kind:
            values.read(item, item_kind, site.inputs[0] if item is value else "", reads)
    start = perf_counter_ns()
    write(target, index, value)
    end = perf_counter_ns()
    name = site.targets[0] if site.targets else ""
    made = values.write(target, kind, name, held, _written_part(target, index))
    owner.quiet = TOUCHED
    state.events.append(
        Event(
            site, None, state.current, start, end, tuple(reads), (made,),
            constants=(_index_text(index),),
        )  # fmt: skip
    )


def _written_part(target: Any, index: Any) -> Any:
    """The view that a basic index names; None for the whole."""
    parts = index if type(index) is tuple else (index,)
    if not all(type(part) in _BASIC or part is Ellipsis for part in parts):
        return None
    part = target[index]
    return part if hasattr(part, "shape") and getattr(part, "base", part) is not None else None


def _index_text(index: Any) -> str:
    parts = index if type(index) is tuple else (index,)
    return ", ".join(
        repr(part) if type(part) in _BASIC or part is Ellipsis else type(part).__name__
        for part in parts
    )


_BASIC = (int, slice, type(None))
NO_KEYWORDS: dict[str, Any] = {}
NO_VALUES: list[int] = []
