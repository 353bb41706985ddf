"""Calls: of functions of the program and of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from time import perf_counter_ns
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

from torchstone.dataflow.tracing.callees import Callee
from torchstone.dataflow.tracing.hooks.common import (
    DATA,
    OTHER,
    ROUNDS,
    SHORT_NS,
    TOUCHED,
    Calm,
    Hook,
    Shed,
    keyword_text,
)
from torchstone.dataflow.tracing.recorder import DEEPEST, Recorder
from torchstone.dataflow.tracing.sites import FunctionSites, Site
from torchstone.dataflow.tracing.values import ARRAY, CONSTANTS, CONTAINER, SCALAR, is_constant

_NAMED = 32  # arguments of one call whose names are kept
_WRITTEN = frozenset(("out", "dst", "inplace"))


def call_hook(site: Site, owner: FunctionSites, recorder: Recorder, shed: Shed, calm: Calm) -> Hook:
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
    rounds = busy = 0
    unrecorded, cuts = recorder.note_unrecorded, recorder.cuts

    def call(func: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal last_func, last_owner, last_callee, last_constant, rounds, busy
        state = states.get(get_ident()) or state_of()
        if state.depth >= recorder.limit:
            if recorder.limit > 0:  # else the recorder has stopped
                cuts[number_of_site] += 1
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
                    constants.append(DATA)
                    entry = known.get(id(item))
                    if entry is not None and entry[0]() is item and entry[1] not in aliases:
                        if not heads or (item.base is None and id(item) not in heads):
                            reads.append(entry[1])
                            continue
                elif not kind:
                    if item_type in CONSTANTS:
                        constants.append(item if item_type is not str else repr(item)[:80])
                    else:
                        constants.append(OTHER)
                    continue
                elif item is last_constant or (item_type is tuple and is_constant(item)):
                    constants.append(item)
                    last_constant = item
                    if not held:
                        continue
                elif kind == SCALAR:
                    constants.append(item if item_type is float or item_type is int else OTHER)
                else:
                    constants.append(DATA)
                read(item, kind, names[place] if place < _NAMED else "", reads)
            if kwargs:
                for keyword, item in kwargs.items():
                    place += 1
                    kind = kind_of(type(item))
                    constants.append(keyword_text(keyword, item, kind))
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
        outer = state.inner
        state.inner = 0
        start = perf_counter_ns()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            end = perf_counter_ns()
            inner, state.inner = state.inner, outer + end - start
            state.current = parent
            state.depth -= 1
            recorder.close_failed(state, index, (
                number_of_site, callee_of(func).number, parent, start, end, tuple(reads), (), (), (),
                type(error).__name__, inner,
            ))  # fmt: skip
            raise
        end = perf_counter_ns()
        took = end - start
        inner, state.inner = state.inner, outer + took
        state.current = parent
        state.depth -= 1
        rounds += 1
        busy += took
        if not rounds % ROUNDS and busy < rounds * SHORT_NS:
            calm(number_of_site, rounds)
        try:
            result_type = type(result)
            kind = kinds.get(result_type)
            if kind is None:
                kind = kind_of(result_type)
            alone = len(events) == index + 1
            if alone and not reads and (not kind or kind >= SCALAR):
                if not kind or (kind == SCALAR or not values.holds_new(result, kind)):
                    events.pop()
                    known_site = state.unrecorded.get(number_of_site)
                    if known_site is None:
                        unrecorded(state, number_of_site, callee_of(func).number, took - inner)
                    else:
                        known_site.calls += 1
                        known_site.own += took - inner
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
                    unrecorded(state, number_of_site, callee.number, took - inner)
                    if callee.sends and recorder.after_message is not None:
                        recorder.after_message()
                    return result
            owner.quiet = TOUCHED
            events[index] = (
                number_of_site, callee.number, parent, start, end, tuple(reads), tuple(makes),
                tuple(returns), tuple(constants), "", inner,
            )  # fmt: skip
            if index > recorder.max_events:
                recorder.overflow()
            return result
        except Exception as trouble:
            recorder.trouble(site, trouble)
            return result

    return call


def own_item_hook(
    site: Site, owner: FunctionSites, recorder: Recorder, shed: Shed, calm: Calm
) -> Hook:
    """`dataset[index]`: an object whose class says in Python what its items are is called."""
    call = call_hook(site, owner, recorder, shed, calm)

    def own_item(left: Any, right: Any, /) -> Any:
        method = getattr(type(left), "__getitem__", None)
        if type(method) is FunctionType:
            return call(MethodType(method, left), right)
        return left[right]

    return own_item
