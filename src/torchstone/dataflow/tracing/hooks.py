"""The functions that stand at the sites while a program is traced."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from sys import getrefcount
from threading import get_ident
from time import perf_counter_ns
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

from torchstone.dataflow.tracing.callees import Callee
from torchstone.dataflow.tracing.recorder import DEEPEST, Recorder
from torchstone.dataflow.tracing.sites import FunctionSites, Site
from torchstone.dataflow.tracing.values import ARRAY, CONSTANTS, CONTAINER, SCALAR, is_constant

Hook = Callable[..., Any]
TOUCHED = -(1 << 62)
"""The quiet count of a function that met data: it never reaches the limit."""

Binary = Callable[[Any, Any], Any]
Unary = Callable[[Any], Any]
_PLAIN: dict[str, Binary] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod, "Pow": operator.pow,
    "MatMult": operator.matmul, "LShift": operator.lshift, "RShift": operator.rshift,
    "BitOr": operator.or_, "BitXor": operator.xor, "BitAnd": operator.and_,
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
    "Eq": operator.eq, "NotEq": operator.ne,
}  # fmt: skip
_UNARY: dict[str, Unary] = {"USub": operator.neg, "Invert": operator.invert}
_IN_PLACE: dict[str, Binary] = {
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
        return _unary_hook(site, owner, recorder, shed, _UNARY[site.op])
    if site.kind == "attribute":
        return _unary_hook(site, owner, recorder, shed, operator.attrgetter(site.op))
    if site.kind == "set":
        return _set_hook(site, owner, recorder)
    return _update_item_hook(site, owner, recorder, _IN_PLACE[site.op])


def _call_hook(
    site: Site, owner: FunctionSites, recorder: Recorder, shed: Callable[[FunctionSites], None]
) -> Hook:
    # One call of a traced function costs what stands here: names are bound once, the common cases
    # (arrays in, an array out) are written out.
    values = recorder.values
    kinds, kind_of, read, known = values.kinds, values.kind_of, values.read, values.known
    heads, aliases, facts, held = values.heads, values.aliases, values.facts, values.held
    states, state_of, next_number = recorder.states, recorder.state, values.next_number
    callee_of = recorder.callees.of
    names = (*site.inputs, *("" for _ in range(_NAMED)))
    receiver_name, target = names[0], site.targets[0] if site.targets else ""
    number_of_site = recorder.add_site(site)
    last_func: Any = None
    last_owner: Any = None
    last_callee: Callee | None = None
    last_constant: Any = None

    def call(func: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal last_func, last_owner, last_callee, last_constant
        state = states.get(get_ident()) or state_of()
        if state.depth >= recorder.limit:
            state.deeper += 1
            if state.deeper > DEEPEST:  # a recursion: from here on without a hook on every level
                shed(owner)
            try:
                return func(*args, **kwargs)
            finally:
                state.deeper -= 1
        reads: list[int] = []
        constants: list[Any] = []
        cls = type(func)
        inputs = args
        receiver_type = None
        try:
            if cls is BuiltinFunctionType or cls is MethodType:
                receiver = func.__self__
                receiver_type = type(receiver)
                if receiver is not None and receiver_type is not ModuleType:
                    kind = kinds.get(receiver_type)
                    if kind is None:
                        kind = kind_of(receiver_type)
                    inputs = (receiver, *args)
                    if kind and kind != CONTAINER:
                        read(receiver, kind, receiver_name, reads)
            place = 0
            for item in args:
                place += 1
                item_type = type(item)
                kind = kinds.get(item_type)
                if kind is None:
                    kind = kind_of(item_type)
                if kind == ARRAY:
                    entry = known.get(id(item))
                    if entry is not None and entry[0]() is item and entry[1] not in aliases:
                        if not heads or (item.base is None and id(item) not in heads):
                            reads.append(entry[1])
                            continue
                elif not kind:
                    if item_type in CONSTANTS:
                        constants.append(item)
                    continue
                elif item is last_constant or (item_type is tuple and is_constant(item)):
                    constants.append(item)
                    last_constant = item
                    if not held:
                        continue
                if kind == SCALAR and item_type is float:
                    constants.append(item)
                read(item, kind, names[place] if place < _NAMED else "", reads)
            if kwargs:
                for item in kwargs.values():
                    place += 1
                    kind = kind_of(type(item))
                    if kind:
                        read(item, kind, names[place] if place < _NAMED else "", reads)
        except Exception as trouble:  # of an object that does not let itself be looked at
            recorder.trouble(site, trouble)
            return func(*args, **kwargs)
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
            recorder.close_failed(state, index, (
                number_of_site, callee_of(func).number, parent, start, end, tuple(reads), (), (), (),
                type(error).__name__,
            ))  # fmt: skip
            raise
        end = perf_counter_ns()
        state.current = parent
        state.depth -= 1
        try:
            result_type = type(result)
            kind = kinds.get(result_type)
            if kind is None:
                kind = kind_of(result_type)
            alone = len(events) == index + 1
            if alone and not reads and (not kind or kind >= SCALAR):
                if not kind or (kind == SCALAR or not values.holds_new(result, kind)):
                    events.pop()
                    owner.quiet += 1
                    if owner.quiet > recorder.quiet_limit:
                        shed(owner)
                    return result
            if func is last_func or (
                receiver_type is not None
                and receiver_type is last_owner
                and last_callee is not None
                and last_callee.ends_with == func.__name__
            ):
                callee = last_callee or callee_of(func)
            else:
                callee = last_callee = callee_of(func)
                last_owner = (
                    receiver_type
                    if cls is BuiltinFunctionType and receiver_type is not ModuleType
                    else None
                )
                last_func = func if inputs is args else None
            makes: Sequence[int]
            returns: Sequence[int]
            entry = known.get(id(result)) if kind == ARRAY else None
            if (
                kind == ARRAY
                and (entry is None or entry[0]() is not result)
                and callee.has_no_effects
                and (not kwargs or kwargs.keys().isdisjoint(_WRITTEN))
            ):
                made = next_number()
                known[id(result)] = (ref(result), made)
                facts[made] = (target, result.nbytes, result.shape, result.dtype, "ndarray")
                makes, returns = (made,), ()
            else:
                makes, returns = recorder.made_by(
                    result, site, callee, reads, inputs, kwargs, number, not alone
                )
                if alone and recorder.is_idle(callee, func, reads, makes, returns, kind):
                    events.pop()
                    if callee.sends and recorder.after_message is not None:
                        recorder.after_message()
                    return result
            owner.quiet = TOUCHED
            events[index] = (
                number_of_site, callee.number, parent, start, end, tuple(reads), tuple(makes),
                tuple(returns), tuple(constants), "",
            )  # fmt: skip
            if index > recorder.max_events:
                recorder.overflow()
            return result
        except Exception as trouble:
            recorder.trouble(site, trouble)
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
    kinds, kind_of, read, known = values.kinds, values.kind_of, values.read, values.known
    facts, held = values.facts, values.held
    states, state_of, next_number = recorder.states, recorder.state, values.next_number
    left_name, right_name = site.inputs
    target = site.targets[0] if site.targets else ""
    in_place = site.kind == "update"
    number_of_site = recorder.add_site(site)
    own_item = _own_item_hook(site, owner, recorder, shed) if site.kind == "item" else None
    reuse = _IN_PLACE.get(site.op) if site.kind == "binary" and site.op in _REUSING else None

    def binary(left: Any, right: Any, /) -> Any:
        kind = kinds.get(type(left))
        if kind is None:
            kind = kind_of(type(left))
        other = kinds.get(type(right))
        if other is None:
            other = kind_of(type(right))
        if (not kind or kind >= SCALAR) and (not other or other >= SCALAR):
            if own_item is not None and not kind:
                return own_item(left, right)
            if not held or (kind != SCALAR and other != SCALAR):
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
        if reuse is not None and getrefcount(left) == _TEMPORARY and _may_reuse(left, right):
            operation = reuse
        else:
            operation = operate
        start = perf_counter_ns()
        result = operation(left, right)
        end = perf_counter_ns()
        makes: Sequence[int]
        returns: Sequence[int] = ()
        if in_place and result is left and kind and kind < SCALAR:
            makes = (values.write(left, kind, left_name, reads),)
        elif (
            kinds.get(type(result)) == ARRAY
            and result is not right
            and (result is not left or operation is reuse)
        ):
            made = next_number()
            known[id(result)] = (ref(result), made)
            facts[made] = (target, result.nbytes, result.shape, result.dtype, "ndarray")
            makes = (made,)
        else:
            makes, returns = recorder.made_by(
                result, site, None, reads, (left, right), NO_KEYWORDS, number
            )
        if not makes:
            return result
        owner.quiet = TOUCHED
        constants: tuple[Any, ...] = ()
        if own_item is not None:
            constants = (_index_text(right),)
        elif type(right) in CONSTANTS:
            constants = (right,)
        elif type(left) in CONSTANTS:
            constants = (left,)
        state.events.append((
            number_of_site, -1, state.current, start, end, tuple(reads), tuple(makes),
            tuple(returns), constants, "",
        ))  # fmt: skip
        return result

    return binary


def _may_reuse(left: Any, right: Any) -> bool:
    """Would numpy write the result over a temporary left operand, as it does without a hook between?
    Only then is it as fast; the values are the same."""
    cls = type(left)
    if cls.__name__ != "ndarray" or left.nbytes < _REUSED_BYTES or left.dtype.kind != "f":
        return False
    if not (left.flags.owndata and left.flags.writeable):
        return False
    if type(right) in (int, float):
        return True
    return type(right) is cls and right.dtype == left.dtype and right.shape == left.shape


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
    number_of_site = recorder.add_site(site)

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
            state.events.append((
                number_of_site, -1, state.current, start, end, tuple(reads), tuple(makes),
                tuple(returns), (), "",
            ))  # fmt: skip
        return result

    return unary


def _set_hook(site: Site, owner: FunctionSites, recorder: Recorder) -> Hook:
    number_of_site = recorder.add_site(site)

    def assign(value: Any, target: Any, index: Any, /) -> None:
        kind = recorder.values.kind_of(type(target))
        if not kind or kind >= SCALAR:
            target[index] = value
            return
        _write_item(
            recorder, site, number_of_site, owner, target, kind, index, value, operator.setitem
        )

    return assign


def _update_item_hook(
    site: Site, owner: FunctionSites, recorder: Recorder, operate: Callable[[Any, Any], Any]
) -> Hook:
    number_of_site = recorder.add_site(site)

    def setitem(target: Any, index: Any, value: Any) -> None:
        target[index] = operate(target[index], value)

    def update(target: Any, index: Any, value: Any, /) -> None:
        kind = recorder.values.kind_of(type(target))
        if not kind or kind >= SCALAR:
            setitem(target, index, value)
            return
        _write_item(recorder, site, number_of_site, owner, target, kind, index, value, setitem)

    return update


def _write_item(
    recorder: Recorder,
    site: Site,
    number_of_site: int,
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
    state.events.append((
        number_of_site, -1, state.current, start, end, tuple(reads), (made,), (),
        (_index_text(index),), "",
    ))  # fmt: skip


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
_TEMPORARY = 2  # references to an operand that nothing but the hook holds
_REUSED_BYTES = 256 * 1024  # numpy's own limit
_REUSING = frozenset(("Add", "Sub", "Mult", "Div"))
_NAMED = 32  # arguments of one call whose names are kept
_WRITTEN = frozenset(("out", "dst", "inplace"))
