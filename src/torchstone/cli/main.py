"""The command line: commands by folder, loaded only when they are called."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from torchstone._version import __version__
from torchstone.cli.command import Subcommand, UnknownCommandError
from torchstone.cli.common import ENDINGS, CommonOptions, check_ending
from torchstone.cli.flags import Parser, add_options, given
from torchstone.cli.settings import find_config, read_table, split_table
from torchstone.core.errors import TorchstoneError
from torchstone.core.registry import names_in
from torchstone.core.text import locale_lang
from torchstone.render.style import printable

OK, FINDINGS, USAGE, FAILED = 0, 1, 2, 3
_COMMANDS = "torchstone.cli.commands"


def _explain(command: str, error: Exception) -> TorchstoneError | None:
    """The error that names a missing package; what reads packages is a fifth of the start."""
    from torchstone.cli.requirements import explain_failed_import

    return explain_failed_import(command, error)


def run(words: Sequence[str]) -> int:
    """Run one command; the exit code."""
    _open_closed_streams()
    lang = _flag_lang(words) or _config_lang() or locale_lang()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever the terminal can show
    try:
        return _run(list(words), lang)
    except TorchstoneError as error:
        print(f"torchstone: {printable(error.say(lang))}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # the reader (head, less) has gone: nothing more to say, and no traceback about it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except ImportError as error:
        said = _explain(words[0], error)
        if said is None:
            raise
        print(f"torchstone: {printable(said.say(lang))}", file=sys.stderr)
        return USAGE
    except OSError as error:
        if (said := _explain(words[0], error)) is not None:  # a library of torch
            print(f"torchstone: {printable(said.say(lang))}", file=sys.stderr)
            return USAGE
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        print(f"torchstone: {error.strerror}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("torchstone: " + ("已中断" if lang == "zh" else "interrupted"), file=sys.stderr)
        return 130


def _open_closed_streams() -> None:
    """A program that is started with `>&-` has no stream there: what it says goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the whole run


def _run(words: list[str], lang: str) -> int:
    names = names_in(_COMMANDS)
    if words[:1] == ["--lang"] and len(words) > 2:  # before the command it is meant for the command
        words = [*words[2:], *words[:2]]
    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview(names, lang))
        return OK if words else USAGE
    if words[0] in ("-V", "--version"):
        print(f"torchstone {__version__}")
        return OK
    name, *rest = words
    if name not in names:
        raise UnknownCommandError("torchstone", name, names)
    module = import_module(f"{_COMMANDS}.{name}")
    command = _chosen(module, name, rest, lang)
    if command is None:
        return OK
    rest = rest[1:] if command.title != name else rest
    return _call(module, command, rest, lang, shlex.join(["torchstone", *words]))


def _chosen(module: ModuleType, name: str, rest: list[str], lang: str) -> Subcommand | None:
    """The command itself, or the part of it that is named first; None when help was enough."""
    parts: Mapping[str, Subcommand] = getattr(module, "SUBCOMMANDS", {})
    if not parts:
        return Subcommand(name, module.HELP, getattr(module, "OPTIONS", None), module.run)
    if rest[:1] in (["-h"], ["--help"]) and not hasattr(module, "run"):
        print(_parts_overview(module, name, parts, lang))
        return None
    if hasattr(module, "run") and (not rest or rest[0] not in parts):
        return Subcommand(name, module.HELP, module.OPTIONS, module.run)
    if not rest or rest[0] not in parts:
        raise UnknownCommandError(f"torchstone {name}", rest[0] if rest else "", list(parts))
    return parts[rest[0]]


def _call(module: ModuleType, command: Subcommand, words: list[str], lang: str, line: str) -> int:
    parser = Parser(
        prog=f"torchstone {command.title}", description=command.help.get(lang), allow_abbrev=False,
        formatter_class=_formatter(),
    )  # fmt: skip
    own = command.options
    if own is not None:
        add_options(parser, own, lang)
    only = {"format": tuple(module.FORMATS)} if hasattr(module, "FORMATS") else None
    add_options(parser, CommonOptions, lang, only)
    before, passed_on = _split_arguments(words, module)
    parsed = parser.parse_args(before)
    flags = given(CommonOptions, parsed)
    own_flags = given(own, parsed) if own is not None else {}
    if passed_on:
        own_flags["arguments"] = (*own_flags.get("arguments", ()), *passed_on)
    name = command.title.partition(" ")[0]
    common, mine = _configured(module, name, flags, own, own_flags)
    if "output" in flags and "format" in flags:
        check_ending(flags["output"], flags["format"])
    elif Path(flags.get("output", "")).suffix in ENDINGS:
        common.pop("format", None)  # the file that is named now is nearer than the configuration
    common_options = CommonOptions(
        **{**common, **flags}, command=line, date=time.strftime("%Y-%m-%d %H:%M %z")
    )
    if not common_options.lang:
        common_options = replace(common_options, lang=lang)
    options = own(**{**mine, **own_flags}) if own is not None else None
    return command.run(options, common_options)


def _split_arguments(words: list[str], module: ModuleType) -> tuple[list[str], list[str]]:
    """What follows `--` is for the script of a command that runs one, flags and all."""
    if not getattr(module, "PASSES_ARGUMENTS", False) or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _configured(
    command: ModuleType,
    name: str,
    flags: dict[str, Any],
    own: type | None,
    own_flags: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    if not getattr(command, "READS_CONFIG", True):
        return {}, {}
    path = Path(flags["config"]) if flags.get("config") else find_config(_start(own_flags))
    table = read_table(path)
    if not table:
        return {}, {}
    common, tables = split_table(table, path, CommonOptions, tool_options())
    return common, tables.get(name, {}) if own is getattr(command, "OPTIONS", None) else {}


def _start(own_flags: dict[str, Any]) -> Path:
    paths = own_flags.get("paths") or (".",)
    first = Path(paths[0]) if paths[0] != "-" else Path(".")
    return first if first.is_dir() else first.parent


def tool_options() -> dict[str, type]:
    """The options class of every command that has a configuration table."""
    found = {}
    for name in names_in(_COMMANDS):
        module = import_module(f"{_COMMANDS}.{name}")
        if getattr(module, "CONFIGURABLE", False):
            found[name] = module.OPTIONS
    return found


def _formatter() -> Any:
    import argparse

    terminal = sys.stdout is not None and sys.stdout.isatty()
    width = min(os.get_terminal_size().columns, 100) if terminal else 100
    return lambda prog: argparse.HelpFormatter(prog, max_help_position=30, width=width)


def _overview(names: list[str], lang: str) -> str:
    def say(en: str, zh: str) -> str:
        return zh if lang == "zh" else en

    lines = [
        f"torchstone {__version__} – "
        + say("the touchstone for PyTorch code", "PyTorch 代码的试金石"),
        "",
        say("usage: torchstone COMMAND [OPTIONS]", "用法：torchstone 命令 [选项]"),
        "",
    ]
    for name in names:
        text = import_module(f"{_COMMANDS}.{name}").HELP.get(lang)
        lines.append(f"  {name:<10} {text}")
    lines += [
        "",
        say("start with:  torchstone review .", "从这里开始：torchstone review ."),
        say(
            "in CI:       torchstone check . --format github",
            "在 CI 中：torchstone check . --format github",
        ),
        say("more:        torchstone help COMMAND", "更多：torchstone help 命令"),
        say(
            "exit codes:  0 clean, 1 findings, 2 usage or configuration error, 3 incomplete (some steps failed)",
            "退出码：0 无问题，1 有问题，2 用法或配置错误，3 不完整（部分步骤失败）",
        ),
    ]
    return "\n".join(lines)


def _parts_overview(
    module: ModuleType, name: str, parts: Mapping[str, Subcommand], lang: str
) -> str:
    zh = lang == "zh"
    lines = [
        module.HELP.get(lang), "",
        f"用法：torchstone {name} 子命令 [选项]" if zh else f"usage: torchstone {name} COMMAND [OPTIONS]", "",
    ]  # fmt: skip
    lines += [f"  {key:<10} {part.help.get(lang)}" for key, part in parts.items()]
    more = f"torchstone {name} {next(iter(parts))} --help"
    return "\n".join([*lines, "", f"更多：{more}" if zh else f"more:  {more}"])


def _flag_lang(words: Sequence[str]) -> str:
    """The language before flags are parsed: errors about flags want one too."""
    for index, word in enumerate(words):
        value = words[index + 1] if word == "--lang" and index + 1 < len(words) else ""
        if word.startswith("--lang="):
            value = word.removeprefix("--lang=")
        if value in ("en", "zh"):
            return value
    return ""


def _config_lang() -> str:
    """The language that the project asks for; a broken configuration is told of later."""
    try:
        value = read_table(find_config(Path("."))).get("lang")
    except (TorchstoneError, OSError):
        return ""
    return value if value in ("en", "zh") else ""
