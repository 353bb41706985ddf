"""A tool's options are one frozen dataclass; flags, configuration keys and schemas follow from it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torchstone.core.codec import schema_of
from torchstone.core.errors import ConfigError, TorchstoneError, UsageError
from torchstone.core.text import NOTHING, Text

T = TypeVar("T")
_KEY = "torchstone"
_SHORT = 20


@dataclass(frozen=True, slots=True)
class About:
    """What the command line needs to know of one option."""

    help: Text = NOTHING
    choices: tuple[str, ...] = ()
    short: str = ""
    flag: str = ""
    metavar: str = ""
    config: bool = True
    """False for what makes sense for one call only, such as the paths."""
    positional: bool = False
    split: bool = True
    """A list may be written with commas; False where commas belong to one value."""
    listed: bool = False
    """A text of values with commas between them: a flag given again adds to it."""


def option(default: Any, en: str, zh: str, **about: Any) -> Any:
    """One field of an options class: its default, what it does, and how it is shown."""
    return dataclasses.field(default=default, metadata={_KEY: About(help=Text(en, zh), **about)})


@dataclass(frozen=True, slots=True)
class Option:
    """One option as the command line sees it."""

    name: str
    type: Any
    default: Any
    about: About

    @property
    def key(self) -> str:
        """The name in configuration files: that of the flag."""
        return self.about.flag.lstrip("-") or self.name.replace("_", "-")

    @property
    def flag(self) -> str:
        return self.about.flag or f"--{self.key}"

    @property
    def many(self) -> bool:
        return typing.get_origin(self.type) is tuple

    @property
    def scalar(self) -> type:
        """The type of one value."""
        hint = typing.get_args(self.type)[0] if self.many else self.type
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        return typing.cast(type, hint)


def options_of(cls: type) -> list[Option]:
    hints = typing.get_type_hints(cls)
    return [
        Option(field.name, hints[field.name], field.default, field.metadata[_KEY])
        for field in dataclasses.fields(cls)
        if _KEY in field.metadata  # others are handed on by the program, not set by a person
    ]


def from_mapping(cls: type[T], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check configuration values against the options class; the fields that were given."""
    known = {item.key: item for item in options_of(cls) if item.about.config}
    given: dict[str, Any] = {}
    for key, value in values.items():
        item = known.get(key.replace("_", "-"))
        if item is None:
            raise unknown(where, key, list(known), ConfigError)
        given[item.name] = _checked(item, value, f"{where}.{key}")
    return given


def _checked(item: Option, value: Any, where: str) -> Any:
    todo = Text(f"see `torchstone config {item.key}`", f"参见 `torchstone config {item.key}`")
    values = value if item.many else [value]
    if item.many and not isinstance(value, list):
        raise ConfigError(where, repr(value), Text("a list", "列表"), todo)
    for one in values:
        wrong_kind = type(one) is not item.scalar and not (
            item.scalar is float and type(one) is int
        )
        if wrong_kind:
            name = item.scalar.__name__
            raise ConfigError(
                where, repr(one), Text(f"a value of type {name}", f"{name} 类型的值"), todo
            )
        if item.about.choices and one not in item.about.choices:
            choices = ", ".join(item.about.choices)
            raise ConfigError(where, repr(one), Text(f"one of {choices}", f"{choices} 之一"), todo)
    return tuple(values) if item.many else value


def unknown(
    where: str,
    given: str,
    known: Sequence[str],
    error: type[TorchstoneError] = UsageError,
    more: Text | None = None,
) -> TorchstoneError:
    """An error for a name that does not exist, with the nearest one that does."""
    import difflib  # only a mistake pays for it

    near = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
    if near:
        todo = Text(f"did you mean {near[0]!r}?", f"您是否想用 {near[0]!r}？")
    elif len(known) <= _SHORT:
        shown = ", ".join(known)
        todo = Text(f"choose from {shown}", f"可选：{shown}")
    else:
        todo = more or Text("see `torchstone --help`", "参见 `torchstone --help`")
    return error(where, Text(f"unknown name {given!r}", f"未知名称 {given!r}"), NOTHING, todo)


def options_schema(cls: type, lang: str = "en") -> dict[str, Any]:
    """The schema of an options class as an agent's tool input."""
    about = {item.name: item.about for item in options_of(cls)}
    schema = schema_of(cls, lambda _, name: about[name].help.get(lang), required=False)
    for name, item in about.items():
        if item.choices:
            shape = schema["properties"][name]
            choices = {"enum": list(item.choices)}
            inner = {"items": {**shape["items"], **choices}} if "items" in shape else choices
            schema["properties"][name] = {**shape, **inner}
    return schema
