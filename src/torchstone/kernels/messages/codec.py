"""Dataclasses as JSON and back: a field is read by the type that its class declares, and nothing else fits.

Fields that hold their default are not written. A reader trusts nothing: what does not have the
declared type is a CodecError.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

M = TypeVar("M")
Reader = Callable[[object], object]


_NOT_FINITE = ("nan", "inf", "-inf")
"""JSON has no such numbers: they go as words."""


class CodecError(ValueError):
    """Data that are not the message that they should be."""


def to_wire(value: object) -> object:
    """A message, or a part of one, as what JSON can hold."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in value]
    if isinstance(value, dict):
        return {key: to_wire(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    found: dict[str, object] = {}
    for name, default in _defaults(kind):
        held = getattr(value, name)
        if held is default or (type(held) is type(default) and held == default):
            continue
        found[name] = to_wire(held)
    return found


_PLAIN = frozenset({str, int, bool, types.NoneType})


@functools.cache
def _defaults(kind: Any) -> tuple[tuple[str, object], ...]:
    """The fields of a message, each with what it holds where nobody said anything."""
    return tuple(
        (
            item.name,
            item.default if item.default_factory is dataclasses.MISSING else item.default_factory(),
        )
        for item in dataclasses.fields(kind)
    )


def from_wire(kind: type[M], data: object) -> M:
    """A message of this class; a CodecError where the data are none."""
    found = _read_message(kind, data)
    assert isinstance(found, kind)
    return found


def prepare_readers(kinds: Iterable[type]) -> None:
    """Look the types of all fields up now: where a candidate is loaded, our modules cannot be found any more."""
    waiting: list[Hashable] = [*kinds]
    seen: set[Hashable] = set()
    while waiting:
        hint = waiting.pop()
        if hint in seen:
            continue
        seen.add(hint)
        waiting += typing.get_args(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            for inner in _fields(hint).values():
                _reader(inner)
                waiting.append(inner)


@functools.cache
def _reader(hint: Hashable) -> Reader:
    """What reads a value of a declared type."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return functools.partial(_read_message, hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is object:
        return lambda data: data
    if hint is float:
        return _read_float
    if hint in (int, str, bool, types.NoneType):
        return functools.partial(_read_plain, hint)
    if origin is list:
        return functools.partial(_read_list, inner[0])
    if origin is tuple:
        return functools.partial(_read_tuple, inner[0])
    if origin is dict:
        return functools.partial(_read_dict, inner[1])
    if origin in (types.UnionType, typing.Union):
        return functools.partial(_read_union, inner)
    if origin is typing.Literal:
        return functools.partial(_read_literal, inner)
    raise TypeError(f"no message can hold {hint}")


@functools.cache
def _fields(kind: type) -> dict[str, Hashable]:
    return typing.get_type_hints(kind)


def _read_message(kind: Callable[..., object], data: object) -> object:
    assert isinstance(kind, type)
    hints = _fields(kind)
    if not isinstance(data, dict) or not data.keys() <= hints.keys():
        raise CodecError(f"no {kind.__name__}")
    try:
        return kind(**{name: _reader(hints[name])(value) for name, value in data.items()})
    except TypeError:
        raise CodecError(f"a {kind.__name__} that lacks something") from None


def _read_float(data: object) -> float:
    if type(data) not in (int, float) and data not in _NOT_FINITE:
        raise CodecError("no number")
    assert isinstance(data, int | float | str)
    return float(data)


def _read_plain(kind: object, data: object) -> object:
    if type(data) is not kind:
        raise CodecError("a value of another type")
    return data


def _read_list(inner: Hashable, data: object) -> list[object]:
    if not isinstance(data, list):
        raise CodecError("no list")
    reader = _reader(inner)
    return [reader(item) for item in data]


def _read_tuple(inner: Hashable, data: object) -> tuple[object, ...]:
    return tuple(_read_list(inner, data))


def _read_dict(inner: Hashable, data: object) -> dict[str, object]:
    if not isinstance(data, dict):
        raise CodecError("no mapping")
    reader = _reader(inner)
    return {key: reader(value) for key, value in data.items()}


def _read_union(choices: tuple[Hashable, ...], data: object) -> object:
    for choice in choices:
        try:
            return _reader(choice)(data)
        except CodecError:
            continue
    raise CodecError("a value of another type")


def _read_literal(choices: tuple[object, ...], data: object) -> object:
    if not isinstance(data, str) or data not in choices:
        raise CodecError("another word")
    return data
