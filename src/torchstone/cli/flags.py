"""Flags made from an options class."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from torchstone.core.errors import UsageError
from torchstone.core.options import Option, options_of
from torchstone.core.text import Text

UNSET: Any = object()


_NEAR = 0.8
"""How alike a suggested flag must be: at 0.6 `--lora` suggests `--color`."""


class OptionError(UsageError):
    """A flag that does not exist, or a value that a flag does not take, in one sentence."""

    def __init__(self, program: str, said: Text, todo: Text) -> None:
        self.said = said
        super().__init__(program.removeprefix("torchstone "), said, said, todo)

    def say(self, lang: str = "en") -> str:
        mark = "：" if lang == "zh" else ": "
        stop = "；" if lang == "zh" else "; "
        return f"{self.where}{mark}{self.said.get(lang)}{stop}{self.todo.get(lang)}"


class Parser(argparse.ArgumentParser):
    """argparse whose mistakes are our errors, with the nearest flag named."""

    known_flags: tuple[str, ...] = ()

    def error(self, message: str) -> NoReturn:
        todo = Text(f"see `{self.prog} --help`", f"参见 `{self.prog} --help`")
        if message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split()[0].partition("=")[0]
            raise self._unknown(word, todo)
        choice = re.fullmatch(
            r"argument (\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)", message
        )
        if choice is not None:
            flag, value, known = choice[1].rpartition("/")[2], choice[2], choice[3].replace("'", "")
            said = Text(f"invalid value {value!r} for {flag}", f"{flag} 的值 {value!r} 无效")
            raise OptionError(self.prog, said, Text(f"choose from {known}", f"可选：{known}"))
        raise OptionError(self.prog, Text(message, message), todo)

    def _unknown(self, word: str, todo: Text) -> OptionError:
        if not word.startswith("-"):
            said = Text(f"unexpected argument {word!r}", f"多余的参数 {word!r}")
            return OptionError(self.prog, said, todo)
        import difflib  # only a mistake pays for it

        near = difflib.get_close_matches(word, self.known_flags, n=1, cutoff=_NEAR)
        if near:
            todo = Text(f"did you mean {near[0]!r}?", f"您是否想用 {near[0]!r}？")
        return OptionError(self.prog, Text(f"unknown option {word!r}", f"未知选项 {word!r}"), todo)


def add_options(
    parser: Parser, cls: type, lang: str, only: Mapping[str, tuple[str, ...]] | None = None
) -> None:
    """One flag (or positional) per option; what is not given stays UNSET.

    `only` narrows the choices of an option, where a command does not have all of them.
    """
    flags: list[str] = []
    for item in options_of(cls):
        choices = (only or {}).get(item.name, item.about.choices)
        _add(parser, item, lang, choices)
        flags += [item.flag, item.about.short]
    parser.known_flags = (*parser.known_flags, *(flag for flag in flags if flag))


def _add(parser: Parser, item: Option, lang: str, choices: tuple[str, ...]) -> None:
    about = item.about
    text = (about.help.get(lang) + _default(item, lang)).replace("%", "%%")
    if about.positional:
        parser.add_argument(item.name, nargs="*" if item.many else "?", default=UNSET,
                            metavar=about.metavar or None, help=text)  # fmt: skip
        return
    names = [item.flag, about.short] if about.short else [item.flag]
    if item.scalar is bool:
        parser.add_argument(
            *names, dest=item.name, action="store_const", const=True, default=UNSET, help=text
        )
        return
    parser.add_argument(
        *names,
        dest=item.name,
        action="append" if item.many or about.listed else "store",
        default=None if item.many or about.listed else UNSET,
        choices=choices or None,
        type=item.scalar,
        metavar=None if choices else about.metavar or item.key.upper(),
        help=text,
    )


def _default(item: Option, lang: str) -> str:
    """The default in brackets, where there is one that says something."""
    if item.default in ("", 0, 0.0, None, ()) or item.scalar is bool or item.about.positional:
        return ""
    value = f"{item.default:g}" if isinstance(item.default, float) else item.default
    shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
    return f"（默认 {shown}）" if lang == "zh" else f" (default: {shown})"


def given(cls: type, parsed: argparse.Namespace) -> dict[str, Any]:
    """The options that stand on the command line, checked for lists."""
    values: dict[str, Any] = {}
    for item in options_of(cls):
        value = getattr(parsed, item.name, UNSET)
        if value is UNSET or ((item.many or item.about.listed) and not value):
            continue
        if item.about.listed:
            value = ",".join(value)
        if item.many:
            listed = [part for words in value for part in words.split(",") if part]
            whole = item.about.positional or not item.about.split
            value = tuple(value if whole else listed)
        values[item.name] = value
    return values
