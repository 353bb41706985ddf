"""Commands that a project installs: a name, and the function of a module that it calls."""

from __future__ import annotations

import ast
import configparser
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchstone.core.files import read_regular

_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ConsoleScript:
    """A command that is there once the project is installed."""

    name: str
    path: str
    """Of the file that holds the function, from the root of the project."""
    function: str


def find_console_scripts(root: Path) -> tuple[ConsoleScript, ...]:
    """Of pyproject.toml, setup.cfg and setup.py, as far as they can be read without running them."""
    found: dict[str, ConsoleScript] = {}
    for reader, name in (
        (_of_pyproject, "pyproject.toml"),
        (_of_setup_cfg, "setup.cfg"),
        (_of_setup, "setup.py"),
    ):
        try:
            text = read_regular(root / name, _BYTES).decode("utf-8", "replace")
            lines = tuple(reader(text))
        except (OSError, ValueError, SyntaxError, configparser.Error):
            continue  # a project without this file, or with one that is not read as data
        for command, target in lines:
            if script := _script(root, command.strip(), target.strip()):
                found.setdefault(script.name, script)
    return tuple(found.values())


def function_to_call(root: Path, path: Path) -> str:
    """The function that a command calls in a file which starts nothing by itself; empty where there is none."""
    for script in find_console_scripts(root):
        if (root / script.path).resolve() == path and not _has_guard(path):
            return script.function
    return ""


def _script(root: Path, name: str, target: str) -> ConsoleScript | None:
    module, _, function = target.partition("[")[0].strip().partition(":")
    inside = module.replace(".", "/")
    if not function.isidentifier():
        return None
    for folder in ("", "src/"):
        for path in (f"{folder}{inside}.py", f"{folder}{inside}/__init__.py"):
            if (root / path).is_file() and (root / path).resolve().is_relative_to(root.resolve()):
                return ConsoleScript(name, path, function)
    return None


def _of_pyproject(text: str) -> Iterator[tuple[str, str]]:
    tables: Any = tomllib.loads(text)
    for keys in (("project", "scripts"), ("tool", "poetry", "scripts")):
        table = tables
        for key in keys:
            table = table.get(key, {}) if isinstance(table, dict) else {}
        for name, target in table.items() if isinstance(table, dict) else ():
            if isinstance(target, str):
                yield name, target


def _of_setup_cfg(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    yield from _of_lines(parser.get("options.entry_points", "console_scripts", fallback=""))


def _of_setup(text: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.keyword) or node.arg != "entry_points":
            continue
        try:
            given = ast.literal_eval(node.value)
        except ValueError:
            continue  # it is computed
        if isinstance(given, str):
            parser = configparser.ConfigParser(interpolation=None)
            parser.read_string(given)
            given = {name: parser[name] for name in parser.sections()}
            lines = given.get("console_scripts", {})
            yield from lines.items()
        elif isinstance(given, dict):
            lines = given.get("console_scripts", ())
            yield from _of_lines(lines if isinstance(lines, str) else "\n".join(map(str, lines)))


def _of_lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, target = line.partition("=")
        if equals:
            yield name, target


def _has_guard(path: Path) -> bool:
    tree = ast.parse(read_regular(path, _BYTES))
    return any(
        isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in tree.body
    )
