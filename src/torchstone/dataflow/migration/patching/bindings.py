"""Every place in user code that holds a function: names, defaults, partials, containers.

Replacing `cv2.resize` alone misses `from cv2 import resize`, default arguments, partial objects and
dispatch tables. They are found from the modules of the program; those of libraries are left alone.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from torchstone.observe.where import PROGRAM

DEPTH = 6
"""Containers in containers are followed this far: tables of functions are rarely nested deeper."""

_ABSENT = object()

Replace = Callable[[Any], Any]
"""The replacement for a value, or the value itself."""
Change = tuple[Callable[[], None], Callable[[], None]]
"""How to make a change, and how to take it back; both may be done twice."""


def is_user_file(path: str | None) -> bool:
    """A file of the program rather than of a library; what has no file (a notebook) is the user's."""
    return not path or PROGRAM.is_own(path)


def user_modules() -> list[ModuleType]:
    return [
        module
        for name, module in list(sys.modules.items())
        if name not in sys.builtin_module_names
        and name.partition(".")[0] not in sys.stdlib_module_names - {"__main__"}
        and (name == "__main__" or is_user_file(getattr(module, "__file__", None)))
        and not name.startswith(("torchstone.", "_pytest.", "pytest"))
    ]


def find_changes(replace: Replace, *roots: Any) -> Iterator[Change]:
    """The changes that put replacements everywhere below the user's modules and these objects."""
    seen: set[int] = set()
    for root in (*user_modules(), *roots):
        yield from _visit(root, replace, seen, DEPTH)


def _visit(holder: Any, replace: Replace, seen: set[int], depth: int) -> Iterator[Change]:
    if id(holder) in seen or depth < 0:
        return
    seen.add(id(holder))
    if isinstance(holder, ModuleType):
        if id(vars(holder)) not in seen:
            seen.add(id(vars(holder)))
            yield from _mapping(vars(holder), replace, seen, depth)
    elif isinstance(holder, FunctionType):
        yield from _function(holder, replace, seen, depth)
    elif isinstance(holder, functools.partial):
        yield from _partial(holder, replace, seen, depth)
    elif isinstance(holder, dict):
        yield from _mapping(holder, replace, seen, depth)
    elif isinstance(holder, list):
        yield from _sequence(holder, replace, seen, depth)
    elif isinstance(holder, MethodType):
        yield from _visit(holder.__func__, replace, seen, depth)
        yield from _visit(holder.__self__, replace, seen, depth - 1)
    elif isinstance(holder, staticmethod | classmethod):
        yield from _visit(holder.__func__, replace, seen, depth)
    elif isinstance(holder, type):
        if is_user_file(getattr(sys.modules.get(holder.__module__), "__file__", None)):
            yield from _attributes(holder, replace, seen, depth)
    elif (attributes := _attributes_of(holder)) is not None:
        yield from _mapping(attributes, replace, seen, depth - 1)


def _is_user_object(value: Any) -> bool:
    """Also an object of a library: a Compose or a Dataset holds functions of the user."""
    return _attributes_of(value) is not None and not isinstance(value, ModuleType | type)


def _attributes_of(value: Any) -> dict[str, Any] | None:
    """Without the object's own `__getattr__`, which may do or raise anything."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return None
    return found if type(found) is dict else None


def _mapping(
    holder: dict[Any, Any], replace: Replace, seen: set[int], depth: int
) -> Iterator[Change]:
    for key, value in list(holder.items()):
        new = _replaced(value, replace)
        if new is not value:
            yield _item_change(holder, key, value, new)
        elif _may_hold(value):
            yield from _visit(value, replace, seen, depth - 1)


def _sequence(holder: list[Any], replace: Replace, seen: set[int], depth: int) -> Iterator[Change]:
    if len(holder) > 10_000:  # a list of data, not of functions
        return
    for index, value in enumerate(holder):
        new = _replaced(value, replace)
        if new is not value:
            yield _item_change(holder, index, value, new)
        elif _may_hold(value):
            yield from _visit(value, replace, seen, depth - 1)


def _attributes(holder: type, replace: Replace, seen: set[int], depth: int) -> Iterator[Change]:
    for name, value in list(vars(holder).items()):
        inner = value.__func__ if isinstance(value, staticmethod) else value
        new = _replaced(inner, replace)
        if new is not inner:
            put = staticmethod(new) if isinstance(value, staticmethod) else new
            yield attribute_change(holder, name, put)
        elif _may_hold(value):
            yield from _visit(value, replace, seen, depth - 1)


def _function(
    holder: FunctionType, replace: Replace, seen: set[int], depth: int
) -> Iterator[Change]:
    defaults = holder.__defaults__
    if defaults and (new := _replaced(defaults, replace)) is not defaults:
        yield (
            functools.partial(setattr, holder, "__defaults__", new),
            functools.partial(setattr, holder, "__defaults__", defaults),
        )
    if id(holder.__globals__) not in seen:  # a function that was sent here without its module
        seen.add(id(holder.__globals__))
        yield from _mapping(holder.__globals__, replace, seen, depth - 1)
    if holder.__kwdefaults__:
        yield from _mapping(holder.__kwdefaults__, replace, seen, depth)
    for cell in holder.__closure__ or ():
        yield from _cell(cell, replace, seen, depth)
    wrapped = getattr(holder, "__wrapped__", None)
    if wrapped is not None:
        yield from _visit(wrapped, replace, seen, depth - 1)


def _cell(cell: CellType, replace: Replace, seen: set[int], depth: int) -> Iterator[Change]:
    try:
        value = cell.cell_contents
    except ValueError:
        return
    new = _replaced(value, replace)
    if new is not value:
        yield (
            functools.partial(setattr, cell, "cell_contents", new),
            functools.partial(setattr, cell, "cell_contents", value),
        )
    elif _may_hold(value):
        yield from _visit(value, replace, seen, depth - 1)


def _partial(
    holder: functools.partial[Any], replace: Replace, seen: set[int], depth: int
) -> Iterator[Change]:
    """A partial object stays the same object: its parts are set by `__setstate__`."""
    func = _replaced(holder.func, replace)
    args = _replaced(holder.args, replace)
    keywords = {key: _replaced(value, replace) for key, value in holder.keywords.items()}
    changed = any(keywords[key] is not value for key, value in holder.keywords.items())
    if func is not holder.func or args is not holder.args or changed:
        before = (holder.func, holder.args, dict(holder.keywords), vars(holder) or None)
        after = (func, args, keywords, vars(holder) or None)
        yield (
            functools.partial(_set_parts, holder, after),
            functools.partial(_set_parts, holder, before),
        )
    elif _may_hold(holder.func):
        yield from _visit(holder.func, replace, seen, depth - 1)


def _set_parts(holder: Any, parts: tuple[Any, ...]) -> None:
    holder.__setstate__(parts)


def _replaced(value: Any, replace: Replace) -> Any:
    """A tuple is made anew if a part of it is replaced: it cannot be changed in place."""
    if type(value) is tuple:
        if len(value) > 1000:
            return value
        parts = tuple(_replaced(item, replace) for item in value)
        return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    return replace(value)


def _may_hold(value: Any) -> bool:
    if isinstance(value, FunctionType):
        return is_user_file(value.__code__.co_filename)
    if isinstance(value, ModuleType | str | bytes | int | float):
        return False
    return isinstance(
        value, dict | list | type | functools.partial | MethodType | staticmethod | classmethod
    ) or (_is_user_object(value) and not hasattr(type(value), "__array__"))


def _item_change(holder: Any, key: Any, old: Any, new: Any) -> Change:
    def take_back() -> None:
        try:
            ours = holder[key] is new
        except LookupError:  # the program took it out
            return
        if ours:  # else the program has put something else there, which is its own
            holder[key] = old

    return functools.partial(holder.__setitem__, key, new), take_back


def attribute_change(holder: Any, name: str, new: Any) -> Change:
    """Of what stands in the object itself; taken back only if nobody else has changed it since."""
    before = vars(holder).get(name, _ABSENT)

    def take_back() -> None:
        if vars(holder).get(name, _ABSENT) is not new:
            return
        if before is _ABSENT:
            delattr(holder, name)
        else:
            setattr(holder, name, before)

    return functools.partial(setattr, holder, name, new), take_back
