"""How a project is started: its scripts, the commands of its README, switches that are left off."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from torchstone.conductor.project.facts import EntryPoint, Launch
from torchstone.conductor.project.gathered import Gathered, relative
from torchstone.conductor.project.switches import required_of, switches_of
from torchstone.core.files import read_regular
from torchstone.starting.commands import find_commands

_README_BYTES = 1 << 20
_NEVER = re.compile(r"(^|/)(setup|conftest|test_\w*)\.py$|download|clean[-_]?up|install", re.I)
"""Scripts that a review never starts."""
_SIDE = re.compile(
    r"(^|[_-])(test|eval|evaluate|infer|inference|predict|demo|sample|generate|make|plot|visuali[sz]e|export|convert"
    r"|prepare|preprocess|process|bench|benchmark|transcribe|translate|server)", re.I,
)  # fmt: skip
_AFTER = re.compile(
    r"(^|[_-])(fine_?tun|resume|continue|pointer|distill|stage_?[2-9]|phase_?[2-9]|step_?[2-9])",
    re.I,
)
"""Scripts that go on with what another one has trained."""
_FIRST = re.compile(r"train|main|run|tune|fit", re.I)
"""How scripts that train are called, and how those are that use what was trained."""


def find_entry_points(root: Path, found: Gathered) -> tuple[EntryPoint, ...]:
    commands: dict[str, list[Launch]] = {}
    for command in find_commands(root):
        words = _known(command.arguments, root / command.path)
        launch = Launch(words, command.ranks, command.folder)
        commands.setdefault(command.path, []).append(launch)
    imported = _files_imported(found)
    scripts = [
        EntryPoint(
            path,
            tuple(dict.fromkeys(commands.get(path, ()))),
            trains or _trains_elsewhere(path, imported, found),
            launched,
            _switches(root, path, found),
            () if path in commands else _required(root, path),
        )
        for path, (trains, launched) in {
            **found.entries,
            **dict(_started_otherwise(commands, imported, found)),
        }.items()
        if path not in found.tests and not _NEVER.search(path)
    ]
    documented = {path: place for place, path in enumerate(commands)}
    return tuple(sorted(scripts, key=lambda item: _order(item, documented)))


def _started_otherwise(
    commands: Container[str], imported: Mapping[str, set[str]], found: Gathered
) -> Iterator[tuple[str, tuple[bool, bool]]]:
    """Scripts that nothing in them marks as a start: the documentation starts them, or nobody imports them
    and their top level does work with modules that train."""
    used = set().union(*imported.values())
    for path, (works, launched) in found.others.items():
        top = works and path not in used and _trains_elsewhere(path, imported, found)
        if path in commands or top:
            yield path, (path in found.training, launched)
    for path in found.unread:
        if path in commands and path.endswith(".py"):
            yield path, (bool(_FIRST.search(Path(path).stem)), False)


def _files_imported(found: Gathered) -> dict[str, set[str]]:
    """Of every file, the files of the project that it imports."""
    files = {
        Path(item).with_suffix("").as_posix().replace("/", "."): item
        for item in (*found.imports, *found.others, *found.entries)
    }
    files |= {key.removeprefix("src."): item for key, item in files.items()}
    files |= {key.removesuffix(".__init__"): item for key, item in files.items()}
    imported: dict[str, set[str]] = {}
    for path, modules in found.imports.items():
        beside = ".".join(Path(path).parts[:-1])
        reached = {files.get(name) or files.get(f"{beside}.{name}") for name in modules}
        imported[path] = {item for item in reached if item is not None and item != path}
    return imported


def _trains_elsewhere(path: str, imported: Mapping[str, set[str]], found: Gathered) -> bool:
    """Whether a script loads a module that trains, whatever it calls it by."""
    pending, seen = [path], {path}
    for item in pending:  # grows while it is walked
        new = imported.get(item, set()) - seen
        seen |= new
        pending += new
    return bool(seen & (found.training | {place.path for place in found.loops}))


def _known(words: tuple[str, ...], script: Path) -> tuple[str, ...]:
    """Without options that a script with a parser of its own does not have (any more)."""
    try:
        text = read_regular(script, _README_BYTES).decode("utf-8", "replace")
    except OSError:
        return words
    options = set(re.findall(r"add_argument\(\s*['\"](-[\w-]+)", text))
    options |= set(re.findall(r"add_argument\([^)]*?,\s*['\"](-[\w-]+)", text))
    if not options or "parse_known_args" in text or "parents=" in text or "import *" in text:
        return words
    kept: list[str] = []
    dropped = False
    for word in words:
        is_option = word.startswith("-") and not word[1:2].isdigit()
        name = word.partition("=")[0]
        prefix = any(item.startswith(name) for item in options)
        dropped = (not prefix) if is_option else dropped
        if not dropped:
            kept.append(word)
    return tuple(kept)


def _order(item: EntryPoint, documented: Mapping[str, int]) -> tuple[object, ...]:
    """What trains first, then what is documented, then what is called so, then what the documentation names
    first or what lies highest; examples in a text come last."""
    stem = Path(item.path).stem
    return (
        not item.trains,
        "#" in item.path,
        bool(_SIDE.search(stem)),
        item.path not in documented,
        item.path.endswith(".ipynb"),
        bool(_AFTER.search(stem)),
        not _FIRST.search(stem),
        item.path.count("/"),
        documented.get(item.path, 0),
        item.path,
    )


def _required(root: Path, path: str) -> tuple[str, ...]:
    try:
        return required_of(ast.parse(read_regular(root / path, _README_BYTES)))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()


def _switches(root: Path, path: str, found: Gathered) -> tuple[str, ...]:
    """Of the script and of the modules beside it: options are often read in a file of their own."""
    home = Path(path).parent.as_posix()
    words: dict[tuple[str, ...], None] = {}
    for file in (root / home).glob("*.py"):
        if relative(file, root) in found.tests:
            continue
        try:
            tree = ast.parse(read_regular(file, _README_BYTES))
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        if relative(file, root) == path or _imports(path, file.stem, root):
            words |= dict.fromkeys(_pairs(switches_of(tree, _readme(root))))
    return tuple(word for pair in words for word in pair)


def _pairs(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """An option with its value."""
    for place, word in enumerate(words):
        if word.startswith("--"):
            value = words[place + 1 : place + 2]
            yield (word, *value) if value and not value[0].startswith("--") else (word,)


def _imports(path: str, name: str, root: Path) -> bool:
    """Whether a script imports the module of this name that lies beside it."""
    try:
        tree = ast.parse(read_regular(root / path, _README_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    return any(
        isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == name
        for node in ast.walk(tree)
    )


def _readme(root: Path) -> str:
    for name in ("README.md", "README.rst", "README.txt", "README"):
        try:
            return read_regular(root / name, _README_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
    return ""
