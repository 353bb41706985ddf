"""Options of a script that turn on what its documented starts leave off.

Only words for the script's own command line are made of them, as of its documented arguments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_PRECISION = re.compile(r"(^|[-_])(bf16|fp16|amp|half|mixed)([-_]|$)")
_SAVING = re.compile(r"(^|[-_])(save|out|output|checkpoint|ckpt)([-_](path|dir|file|to|folder))?$")
_DOCUMENTED = re.compile(r"`(--[\w-]+)(?:[ =]([\w./-]+))?`")
_FOLDERS = ("dir", "out", "output", "folder")


def switches_of(tree: ast.Module, readme: str) -> tuple[str, ...]:
    """Flags for mixed precision and places for checkpoints: from the code, and from the README."""
    found: dict[str, str] = {}
    for name, stored in _options(tree):
        bare = name.lstrip("-")
        if stored and _PRECISION.search(bare):
            found[name] = ""
        elif not stored and _SAVING.search(bare):
            found[name] = _place(bare, "")
    for name, value in _DOCUMENTED.findall(readme):
        if name.lstrip("-") and _SAVING.search(name.lstrip("-")):
            found[name] = _place(name.lstrip("-"), value)
    return tuple(word for name, value in found.items() for word in (name, value) if word)


_VALUES = {"int": "2", "float": "0.1"}
"""Small numbers that a script without documentation is started with."""


def required_of(tree: ast.Module) -> tuple[str, ...]:
    """Words for the arguments that argparse insists on: numbers, and first choices; nothing where
    one of them is a text that only its author knows."""
    found: list[str] = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        first = node.args[0] if node.args else None
        if node.func.attr != "add_argument" or not isinstance(first, ast.Constant):
            continue
        name = str(first.value)
        given = {item.arg: item.value for item in node.keywords}
        needed = given.get("required")
        option = name.startswith("-")
        if option and not (isinstance(needed, ast.Constant) and needed.value is True):
            continue
        if not option and ("nargs" in given or "default" in given):
            continue
        value = _value(given)
        if not value:
            return ()
        found += [name, value] if option else [value]
    return tuple(found)


def _value(given: dict[str | None, ast.expr]) -> str:
    choices = given.get("choices")
    if isinstance(choices, (ast.List, ast.Tuple)) and choices.elts:
        first = choices.elts[0]
        return str(first.value) if isinstance(first, ast.Constant) else ""
    kind = given.get("type")
    return _VALUES.get(kind.id, "") if isinstance(kind, ast.Name) else ""


def _place(name: str, documented: str) -> str:
    """A file or a folder in the copy that the script runs in."""
    if documented and "." in documented and not documented.startswith(("/", ".")):
        return documented.rpartition("/")[2]
    is_folder = documented.isupper() or any(word in name for word in _FOLDERS)
    return "probe-output" if is_folder else "probe.pt"


def _options(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Names of argparse options that have no value of their own, and whether they are flags."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        names = [item.value for item in node.args if isinstance(item, ast.Constant)
                 and isinstance(item.value, str) and item.value.startswith("--")]  # fmt: skip
        if node.func.attr != "add_argument" or not names:
            continue
        given = {item.arg: item.value for item in node.keywords}
        action, default = given.get("action"), given.get("default")
        flag = isinstance(action, ast.Constant) and action.value == "store_true"
        empty = default is None or (isinstance(default, ast.Constant) and not default.value)
        if flag or (action is None and empty and "choices" not in given):
            yield names[0], flag
