"""The command line: commands by folder, loaded only when they are called."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from torchstone._version import __version__
from torchstone.core.errors import TorchstoneError
from torchstone.core.options import unknown
from torchstone.core.registry import names_in
from torchstone.core.text import locale_lang
from torchstone.cli.common import CommonOptions
from torchstone.cli.flags import Parser, add_options, given
from torchstone.cli.settings import find_config, read_table, split_table
from torchstone.render.style import printable

OK, FINDINGS, USAGE, FAILED = 0, 1, 2, 3
_COMMANDS = "torchstone.cli.commands"


def run(words: Sequence[str]) -> int:
    """Run one command; the exit code."""
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
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        print(f"torchstone: {error.strerror}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("torchstone: " + ("已中断" if lang == "zh" else "interrupted"), file=sys.stderr)
        return 130


def _run(words: list[str], lang: str) -> int:
    names = names_in(_COMMANDS)
    if words[:1] == ["--lang"] and len(words) > 2:  # before the command it is meant for the command
        words = [*words[2:], *words[:2]]
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview(names, lang))
        return OK if words else USAGE
    if words[0] in ("-V", "--version"):
        print(f"torchstone {__version__}")
        return OK
    name = words[0]
    if name not in names:
        raise unknown("torchstone", name, names)
    command = import_module(f"{_COMMANDS}.{name}")
    parser = Parser(
        prog=f"torchstone {name}", description=command.HELP.get(lang), allow_abbrev=False,
        formatter_class=_formatter(),
    )  # fmt: skip
    own = getattr(command, "OPTIONS", None)
    if own is not None:
        add_options(parser, own, lang)
    add_options(parser, CommonOptions, lang)
    parsed = parser.parse_args(words[1:])
    flags = given(CommonOptions, parsed)
    own_flags = given(own, parsed) if own is not None else {}
    common, mine = _configured(command, name, flags, own, own_flags)
    common_options = CommonOptions(**{**common, **flags})
    if not common_options.lang:
        common_options = replace(common_options, lang=lang)
    options = own(**{**mine, **own_flags}) if own is not None else None
    code: int = command.run(options, common_options)
    return code


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
    return common, tables.get(name, {}) if own is not None else {}


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
        say("start with:  torchstone check .", "从这里开始：torchstone check ."),
        say("more:        torchstone COMMAND --help", "更多：torchstone 命令 --help"),
        say(
            "exit codes:  0 clean, 1 findings, 2 usage or configuration, 3 part of the work failed",
            "退出码：0 无问题，1 有问题，2 用法或配置错误，3 部分工作失败",
        ),
    ]
    return "\n".join(lines)


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
