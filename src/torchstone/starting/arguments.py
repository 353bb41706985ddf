"""Arguments that a program insists on, with small values: argparse, click, fire, Hydra."""

from __future__ import annotations

import argparse
import functools
import linecache
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchstone.starting.argument_values import known_values
from torchstone.starting.obstacles import MissingArguments
from torchstone.starting.supplies import Arguments, Supply

_PATHS = re.compile(
    r"path|dir|root|data|file|folder|corpus|input|src|source|json|csv|vocab|dict|list$", re.I
)
_OUTPUTS = re.compile(r"out|save|log|exp|result|checkpoint|ckpt|name|tag|run", re.I)
_LATER = re.compile(r"resume|restore|checkpoint|ckpt|pretrain|load|weight|init", re.I)
"""Options that go on with what an earlier run has left."""
_MADE = "made-data"
_MODELS = re.compile(r"model|arch|backbone|tokenizer|base", re.I)
_NUMBERS = {int: "2", float: "0.1", bool: "1"}
_REQUIRED = "the following arguments are required"
_FIRE = re.compile(r"received no value for the required argument: (\w+)")
_HYDRA = re.compile(r"Missing mandatory value: ([\w.]+)")


def find_missing_arguments(error: BaseException) -> MissingArguments | None:
    """What a parser of arguments refused, by the frames that the exception went through."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if name == "error" and path.endswith("argparse.py"):
            return _of_argparse(frame.f_locals.get("self"), str(frame.f_locals.get("message", "")))
    for one in (error, error.__context__, error.__cause__):
        if one is not None and (found := _of_others(one)):
            return found
    is_of_nothing = isinstance(error, TypeError | AttributeError) and "NoneType" in str(error)
    return _of_paths() if is_of_nothing else None


_parsed: list[tuple[argparse.ArgumentParser, Any]] = []
"""The parser of the program, and what it gave."""


def watch_parsers() -> None:
    """Keep the last command line that was read, for what it left out."""
    real = argparse.ArgumentParser.parse_known_args

    @functools.wraps(real)
    def parse(parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> Any:
        given = real(parser, *args, **kwargs)
        _parsed[:] = [(parser, given[0])]
        return given

    argparse.ArgumentParser.parse_known_args = parse  # type: ignore[method-assign, assignment]


def _of_paths() -> MissingArguments | None:
    """Options for files to read that were not given and have no default: nothing was read from nowhere."""
    words: list[str] = []
    for parser, given in _parsed:
        for action in parser._actions:
            name = action.dest
            is_read = _PATHS.search(name) and not _OUTPUTS.search(name) and not _LATER.search(name)
            if not is_read or action.nargs is not None or not action.option_strings:
                continue
            if getattr(given, name, "") is None:
                known = value_for(name, action.type, action.choices)
                value = f"made-data/{name}" if known == _MADE else known
                words += [action.option_strings[-1], value]
    said = "files that it reads are options without a default"
    return MissingArguments(said, tuple(words)) if words else None


def _of_argparse(parser: Any, message: str) -> MissingArguments | None:
    if not message.startswith(_REQUIRED):
        return None
    named = {word.strip() for word in message.partition(":")[2].split(",")}
    words: list[str] = []
    for action in parser._actions:
        spelled = "/".join(action.option_strings) or str(action.metavar or action.dest)
        if spelled in named:
            value = value_for(action.dest, action.type, action.choices)
            words += [action.option_strings[-1], value] if action.option_strings else [value]
    return MissingArguments(message, tuple(words)) if words else None


def _of_others(error: BaseException) -> MissingArguments | None:
    if isinstance(error, IndexError) and (frames := list(traceback.walk_tb(error.__traceback__))):
        frame, line = frames[-1]
        if "argv[" in linecache.getline(frame.f_code.co_filename, line):
            return MissingArguments("the program reads more words of its command line")
    if type(error).__name__ == "MissingParameter":  # of click
        param: Any = getattr(error, "param", None)
        if param is None:
            return None
        value = value_for(str(param.name), None, getattr(param.type, "choices", None))
        opts = [word for word in param.opts if word.startswith("-")]
        return MissingArguments(str(error), (opts[-1], value) if opts else (value,))
    text = str(getattr(error, "trace", "")) or str(error)
    if match := _FIRE.search(text):
        return MissingArguments(match[0], (f"--{match[1]}", value_for(match[1], None, None)))
    if match := _HYDRA.search(text):
        return MissingArguments(match[0], (f"{match[1]}={value_for(match[1], None, None)}",))
    return None


def value_for(name: str, kind: Any, choices: Any) -> str:
    """A small number, the first choice, a text that the program compares the argument with, or a name for what
    the argument is called after."""
    if choices:
        return str(next(iter(choices)))
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    if known := known_values(name, Path(sys.argv[0]).resolve().parent):
        return known[0]
    if _OUTPUTS.search(name) and not _MODELS.search(name):
        return "made-output"
    if _PATHS.search(name):
        return _MADE
    return "gpt2" if _MODELS.search(name) else "1"


def add_arguments(given: Sequence[str], supplies: Sequence[Supply]) -> list[str]:
    """The command line with what was added."""
    added = [word for item in supplies if isinstance(item, Arguments) for word in item.words]
    return [*given, *added]
