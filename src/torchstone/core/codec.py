"""Dataclasses to plain data and back, and the JSON schema that describes them.

One walk over the types serves four readers: reports on disk, messages between processes, the published schema, and
the schemas that agents get for a tool's options.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

from torchstone.core.errors import InputError
from torchstone.core.text import Text

T = TypeVar("T")
Data = Any


def to_data(value: object) -> Data:
    """Plain data (dict, list, str, number) that holds everything; empty fields are left out."""
    if value.__class__ in _AS_THEY_ARE:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        out: dict[str, Data] = {}
        kind = getattr(type(value), "kind", None)
        if isinstance(kind, str):
            out["kind"] = kind
        for name, default in _defaults(type(value)):
            item = getattr(value, name)
            if item is not default and item != default:
                out[name] = to_data(item)
        return out
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_data(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


_AS_THEY_ARE = frozenset({str, int, bool, types.NoneType})


def from_data(cls: type[T], data: Data, where: str = "report") -> T:
    """The value that `to_data` wrote; anything else is an InputError, never a half-read object."""
    return typing.cast(T, _decode(cls, data, where))


def prepare_classes(classes: Iterable[type]) -> None:
    """Look the types of all fields up now, those of classes inside of them too: where a process has given up its
    files, modules cannot be found any more."""
    waiting: list[Any] = [*classes]
    seen: set[Any] = set()
    while waiting:
        hint = waiting.pop()
        if hint in seen:
            continue
        seen.add(hint)
        waiting += _parts(hint)[1]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            waiting += _hints(hint).values()


@functools.cache
def _defaults(cls: type) -> tuple[tuple[str, object], ...]:
    """The fields of a dataclass, each with what it holds where nobody said anything."""
    return tuple((field.name, _default(field)) for field in dataclasses.fields(cls))


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _wrong(where: str, data: Data, expected: str) -> InputError:
    given = repr(data)
    return InputError(
        where,
        given if len(given) <= 60 else given[:57] + "...",
        expected,
        Text(
            "write the file anew with this version of torchstone",
            "请用当前版本的 torchstone 重新生成该文件",
        ),
    )


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    # imported by name: the classes that hold evidence or an answer do without them at start
    evidence = importlib.import_module("torchstone.core.pictures").Evidence
    answer = importlib.import_module("torchstone.core.answer").Answer
    return typing.get_type_hints(cls, localns={"Evidence": evidence, "Answer": answer})


@functools.cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """What a hint is made of: `tuple` and `(int, ...)` of `tuple[int, ...]`."""
    return typing.get_origin(hint), typing.get_args(hint)


@functools.cache
def _keys(cls: type) -> tuple[frozenset[str], tuple[str, ...]]:
    """The fields of a dataclass, and those of them that have no default."""
    fields = dataclasses.fields(cls)
    needed = tuple(field.name for field in fields if _default(field) is dataclasses.MISSING)
    return frozenset(field.name for field in fields), needed


def _decode(hint: Any, data: Data, where: str) -> Any:
    if hint is Any or (hint is str and data.__class__ is str):
        return data
    origin, args = _parts(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(args, data, where)
    if origin is typing.Literal:
        if data not in args:
            raise _wrong(where, data, f"one of {', '.join(map(str, args))}")
        return data
    if origin is tuple or origin is list:
        if not isinstance(data, (list, tuple)):
            raise _wrong(where, data, "a list")
        if origin is list:
            return [_decode(args[0], item, f"{where}[{i}]") for i, item in enumerate(data)]
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], item, f"{where}[{i}]") for i, item in enumerate(data))
        if len(args) != len(data):
            raise _wrong(where, data, f"{len(args)} values")
        return tuple(_decode(arg, item, where) for arg, item in zip(args, data, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, Mapping):
            raise _wrong(where, data, "a mapping")
        return {str(key): _decode(args[1], item, f"{where}.{key}") for key, item in data.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(data)
        except ValueError:
            raise _wrong(where, data, f"one of {', '.join(str(m.value) for m in hint)}") from None
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(typing.cast(type, hint), data, where)
    return _decode_plain(hint, data, where)


def _decode_plain(hint: Any, data: Data, where: str) -> Any:
    if hint is type(None):
        if data is None:
            return None
    elif hint is float:
        if isinstance(data, str) and data in ("nan", "inf", "-inf"):
            return float(data)
        if isinstance(data, (int, float)) and not isinstance(data, bool):
            return data
    elif hint is int:
        if isinstance(data, int) and not isinstance(data, bool):
            return data
    elif isinstance(data, hint):
        return data
    raise _wrong(where, data, getattr(hint, "__name__", str(hint)))


def _decode_union(args: tuple[Any, ...], data: Data, where: str) -> Any:
    if data is None and type(None) in args:
        return None
    kinds = [arg for arg in args if isinstance(getattr(arg, "kind", None), str)]
    if kinds and isinstance(data, Mapping) and "kind" in data:
        for arg in kinds:
            if arg.kind == data["kind"]:
                return _decode(arg, data, where)
        raise _wrong(where, data["kind"], "a known kind of evidence")
    for arg in sorted(args, key=lambda arg: arg is float):
        try:
            return _decode(arg, data, where)
        except InputError:
            continue
    raise _wrong(where, data, " or ".join(getattr(arg, "__name__", str(arg)) for arg in args))


def _decode_dataclass(cls: type, data: Data, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise _wrong(where, data, f"a {cls.__name__} mapping")
    hints, values = _hints(cls), {}
    names, needed = _keys(cls)
    for key, item in data.items():
        if key in names:
            values[key] = _decode(hints[key], item, f"{where}.{key}")
    for name in needed:
        if name not in values:
            raise _wrong(where, sorted(data), f"the key {name!r}")
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        raise _wrong(where, sorted(data), str(error)) from None


# -- schema ---------------------------------------------------------------------------------------

Describe = Callable[[type, str], str]


def schema_of(
    cls: type, describe: Describe | None = None, required: bool = True
) -> dict[str, Data]:
    """The JSON schema (draft 2020-12) of a dataclass, with every class it uses under `$defs`."""
    definitions: dict[str, Data] = {}
    _define(cls, definitions, describe, required)
    root = definitions.pop(cls.__name__)
    return {**root, "$defs": dict(sorted(definitions.items()))} if definitions else root


def _define(
    cls: type, definitions: dict[str, Data], describe: Describe | None, required: bool
) -> None:
    if cls.__name__ in definitions:
        return
    definitions[cls.__name__] = {}  # reserves the name: a Branch holds Branches
    properties: dict[str, Data] = {}
    needs: list[str] = []
    kind = getattr(cls, "kind", None)
    if isinstance(kind, str):
        properties["kind"] = {"const": kind}
        needs.append("kind")
    for field in dataclasses.fields(cls):
        shape = _shape(_hints(cls)[field.name], definitions, describe, required)
        if describe and (text := describe(cls, field.name)):
            shape = {**shape, "description": text}
        properties[field.name] = shape
        if required and _default(field) is dataclasses.MISSING:
            needs.append(field.name)
    definitions[cls.__name__] = {
        "type": "object",
        "properties": properties,
        **({"required": needs} if needs else {}),
        "additionalProperties": False,
    }


_PLAIN: dict[Any, Data] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]},
    type(None): {"type": "null"},
    Any: {},
}


def _shape(
    hint: Any, definitions: dict[str, Data], describe: Describe | None, required: bool
) -> Data:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_shape(arg, definitions, describe, required) for arg in args]}
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": _shape(args[0], definitions, describe, required)}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin is not None and issubclass(origin, Mapping):
        return {
            "type": "object",
            "additionalProperties": _shape(args[1], definitions, describe, required),
        }
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint):
        cls = typing.cast(type, hint)
        _define(cls, definitions, describe, required)
        return {"$ref": f"#/$defs/{cls.__name__}"}
    raise TypeError(f"no schema for {hint!r}")
