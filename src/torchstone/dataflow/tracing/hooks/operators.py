"""Operators, comparisons, items and attributes; the function for one site."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from sys import getrefcount
from threading import get_ident
from time import perf_counter_ns
from typing import Any
from weakref import ref

from torchstone.dataflow.tracing.hooks.calls import call_hook, own_item_hook
from torchstone.dataflow.tracing.hooks.common import (
    NO_KEYWORDS,
    ROUNDS,
    SHORT_NS,
    TOUCHED,
    Calm,
    Hook,
    Shed,
)
from torchstone.dataflow.tracing.hooks.items import (
    assign_item,
    index_text,
    item_updater,
    set_hook,
    update_item_hook,
)
from torchstone.dataflow.tracing.recorder import Recorder
from torchstone.dataflow.tracing.sites import FunctionSites, Site
from torchstone.dataflow.tracing.values import ARRAY, CONSTANTS, CONTAINER, SCALAR

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
_TEMPORARY = 2  # references to an operand that nothing but the hook holds
_REUSED_BYTES = 256 * 1024  # numpy's own limit
_REUSING = frozenset(("Add", "Sub", "Mult", "Div"))


def make_hook(site: Site, owner: FunctionSites, recorder: Recorder, shed: Shed, calm: Calm) -> Hook:
    """The function for one site."""
    if site.kind == "call":
        return call_hook(site, owner, recorder, shed, calm)
    if site.kind == "set":
        return set_hook(site, owner, recorder, calm)
    if site.kind == "update_item":
        return update_item_hook(site, owner, recorder, calm, _IN_PLACE[site.op])
    make = _unary_hook if site.kind in ("unary", "attribute") else _binary_hook
    return make(site, owner, recorder, shed, calm, plain_operation(site))


def plain_operation(site: Site) -> Hook:
    """The site without a hook: a function in C that does what the source says, where there is one."""
    if site.kind in ("binary", "compare"):
        return _PLAIN[site.op]
    if site.kind == "update":
        return _IN_PLACE[site.op]
    if site.kind == "unary":
        return _UNARY[site.op]
    if site.kind == "attribute":
        return operator.attrgetter(site.op)
    if site.kind == "set":
        return assign_item
    if site.kind == "update_item":
        return item_updater(_IN_PLACE[site.op])
    return operator.getitem if site.kind == "item" else operator.call


def _binary_hook(
    site: Site,
    owner: FunctionSites,
    recorder: Recorder,
    shed: Shed,
    calm: Calm,
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
    own_item = own_item_hook(site, owner, recorder, shed, calm) if site.kind == "item" else None
    reuse = _IN_PLACE.get(site.op) if site.kind == "binary" and site.op in _REUSING else None

    quiet = rounds = busy = 0

    def operate_quietly(left: Any, right: Any) -> Any:
        nonlocal quiet
        quiet += 1
        if not quiet % ROUNDS:
            calm(number_of_site, quiet)
        owner.quiet += 1
        if owner.quiet > recorder.quiet_limit:
            shed(owner)
        return operate(left, right)

    def binary(left: Any, right: Any, /) -> Any:
        nonlocal rounds, busy
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
                return operate_quietly(left, right)
        state = states.get(get_ident()) or state_of()
        if state.depth >= recorder.limit:
            return operate(left, right)
        reads: list[int] = []
        if kind:
            read(left, kind, left_name, reads)
        if other:
            read(right, other, right_name, reads)
        if not reads:
            return operate_quietly(left, right)
        number = next_number()
        if reuse is not None and getrefcount(left) == _TEMPORARY and _may_reuse(left, right):
            operation = reuse
        else:
            operation = operate
        start = perf_counter_ns()
        result = operation(left, right)
        end = perf_counter_ns()
        state.inner += end - start
        rounds += 1
        busy += end - start
        if not rounds % ROUNDS and busy < rounds * SHORT_NS:
            calm(number_of_site, rounds)
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
            constants = (index_text(right),)
        elif type(right) in CONSTANTS:
            constants = (right,)
        elif type(left) in CONSTANTS:
            constants = (left,)
        state.events.append((
            number_of_site, -1, state.current, start, end, tuple(reads), tuple(makes),
            tuple(returns), constants, "", 0,
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


def _unary_hook(
    site: Site,
    owner: FunctionSites,
    recorder: Recorder,
    shed: Shed,
    calm: Calm,
    operate: Callable[[Any], Any],
) -> Hook:
    values = recorder.values
    (name,) = site.inputs
    number_of_site = recorder.add_site(site)

    quiet = rounds = busy = 0

    def unary(operand: Any, /) -> Any:
        nonlocal quiet, rounds, busy
        kind = values.kind_of(type(operand))
        state = recorder.state()
        reads: list[int] = []
        if kind and kind != CONTAINER and state.depth < recorder.limit:
            values.read(operand, kind, name, reads)
        if not reads:
            quiet += 1
            if not quiet % ROUNDS:
                calm(number_of_site, quiet)
            owner.quiet += 1
            if owner.quiet > recorder.quiet_limit:
                shed(owner)
            return operate(operand)
        number = values.next_number()
        start = perf_counter_ns()
        result = operate(operand)
        end = perf_counter_ns()
        state.inner += end - start
        rounds += 1
        busy += end - start
        if not rounds % ROUNDS and busy < rounds * SHORT_NS:
            calm(number_of_site, rounds)
        makes, returns = recorder.made_by(
            result, site, None, reads, (operand,), NO_KEYWORDS, number
        )
        if makes:
            owner.quiet = TOUCHED
            state.events.append((
                number_of_site, -1, state.current, start, end, tuple(reads), tuple(makes),
                tuple(returns), (), "", 0,
            ))  # fmt: skip
        return result

    return unary
