"""Commands that start a project, as its documentation, shell scripts and build files write them.

Only the words for a script of the project are taken; nothing of a shell is run.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchstone.core.files import read_regular
from torchstone.sources.discover import SKIPPED
from torchstone.starting.console_scripts import find_console_scripts

_BYTES = 1 << 20
_MOST_FILES = 200
_MOST_RANKS = 64
_TEXTS = (".md", ".rst", ".txt", ".sh", ".bash", ".yml", ".yaml")
_PLAIN = ("README", "Makefile", "makefile")
_PROGRAM = re.compile(
    r"(?:^|[\s;&|(`])(?:python[\d.]*|torchrun|accelerate\s+launch|deepspeed|\./)\s*(?=\S)(.*)"
)
_RANKS = re.compile(r"nproc[-_]per[-_]node[= ](\d+)|num[-_]processes[= ](\d+)|num[-_]gpus[= ](\d+)")
_ASSIGNED = re.compile(r"^(?:export\s+)?([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s;&|]*)\s*;?\s*$")
_LOOP = re.compile(r"^for\s+(\w+)\s+in\s+([^;\s]+)")
"""A loop of a shell: its first round is one of the documented starts."""
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_SEVERAL_WORDS = re.compile(r"\[[^][\n]*\s[^][\n]*\]|<[^<>\n]*\s[^<>\n]*>|\{[^{}\n]*\s[^{}\n]*\}")
"""What the reader is to fill in, in more than one word: `[name of the run]`."""
_UNKNOWN = re.compile(r"[<>{}$*]|\.\.\.|^\[.*\]?$|path[/_-]to|your[_-]|\w_name(\.\w+)?$")
"""Words that a reader is to fill in."""
_HELP = ("--help", "-h", "--version")
_ENDS = re.compile(r"&&|\|\|?|;|&|\d?>.*")
"""Words with which the command of a shell ends."""


@dataclass(frozen=True, slots=True)
class Command:
    """A script of the project with the words it is started with."""

    path: str
    """Of the script, from the root of the project."""
    arguments: tuple[str, ...] = ()
    ranks: int = 1
    folder: str = ""
    """Where it is started, from the root."""


@dataclass(slots=True)
class _Shell:
    """What the lines before have set."""

    folder: Path
    installed: Mapping[str, str]
    """Commands that the project installs, with the file that each starts."""
    variables: dict[str, str] = field(default_factory=dict)


def find_commands(root: Path) -> tuple[Command, ...]:
    """All commands, those of the documentation nearest to the root first."""
    found: dict[Command, None] = {}
    installed = {item.name: item.path for item in find_console_scripts(root)}
    for path in itertools.islice(_files(root), _MOST_FILES):
        try:
            text = read_regular(path, _BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        found.update(dict.fromkeys(_commands(text, path, root, installed)))
    return tuple(found)


def _files(root: Path) -> list[Path]:
    """READMEs, then shell scripts and build files, then other texts; the highest first."""
    found = [
        path
        for path in root.rglob("*")
        if (path.suffix.lower() in _TEXTS or path.name in _PLAIN)
        and not SKIPPED & set(path.relative_to(root).parts)
        and not path.name.startswith(("requirements", "LICENSE"))
    ]

    def order(path: Path) -> tuple[int, int, str]:
        is_readme = path.name.lower().startswith("readme")
        is_shell = path.suffix in (".sh", ".bash") or path.name in _PLAIN
        return (0 if is_readme else 1 if is_shell else 2, len(path.parts), str(path))

    return sorted(found, key=order)


def _commands(text: str, path: Path, root: Path, installed: Mapping[str, str]) -> Iterator[Command]:
    shell = _Shell(path.parent, installed)
    # a space after the backslash ends the command for a shell, and is not what anybody means
    for raw in re.sub(r"\\[ \t]*\r?\n", " ", text).splitlines():
        line = raw.strip().strip("`").removeprefix("$ ").removeprefix("> ").strip()
        if line.startswith("```") or (raw.startswith("#") and path.suffix == ".md"):
            shell.folder = path.parent  # another block, or another chapter
            continue
        if match := _ASSIGNED.match(line):
            shell.variables[match[1]] = match[2].strip("\"'")
            continue
        if match := _LOOP.match(line):
            shell.variables[match[1]] = match[2].strip("\"'")
        for part in re.split(r"\s*(?:&&|;)\s*", line):
            if part.startswith("cd "):
                shell.folder = _below(shell.folder, part[3:].strip(), root)
            elif match := _PROGRAM.search(part):
                yield from _command(match[1], part, shell, root)
            elif part.split(maxsplit=1)[:1] and part.split(maxsplit=1)[0] in installed:
                yield from _command(part, part, shell, root)


def _below(folder: Path, name: str, root: Path) -> Path:
    """A folder that a line changes to; the same where it is none of the project."""
    target = (folder / name.split()[0].strip("\"'")).resolve() if name else folder
    if target.is_dir() and target.is_relative_to(root.resolve()):
        return target
    is_clone = (folder / name.split()[0]).name.lower() == root.resolve().name.lower()
    return root if is_clone else folder


def _command(rest: str, line: str, shell: _Shell, root: Path) -> Iterator[Command]:
    filled = _VARIABLE.sub(lambda item: shell.variables.get(item[1], item[0]), rest)
    filled = _SEVERAL_WORDS.sub("<value>", filled)
    try:
        words = shlex.split(filled.partition("`")[0], comments=True)
    except ValueError:
        return
    ranks = _RANKS.search(line)
    count = int(next(filter(None, ranks.groups()), "1")) if ranks else 1
    for place, word in enumerate(words):
        is_module = place > 0 and words[place - 1] == "-m"
        name = word.replace(".", "/") if is_module else shell.installed.get(word, word)
        names = (f"{name}.py", f"{name}/__main__.py") if is_module else (name,)
        folders = dict.fromkeys((shell.folder, root, *_folders_with(names, root)))
        for folder, one in itertools.product(folders, names):
            script = (folder / one).resolve()
            if is_script(script) and script.is_relative_to(root.resolve()):
                arguments = _arguments(words[place + 1 :])
                if not set(arguments) & set(_HELP):
                    home = folder.resolve().relative_to(root.resolve()).as_posix()
                    inside = script.relative_to(root.resolve()).as_posix()
                    ranked = max(1, min(count, _MOST_RANKS))
                    yield Command(inside, arguments, ranked, "" if home == "." else home)
                return


def _folders_with(names: tuple[str, ...], root: Path) -> Iterator[Path]:
    """Where a script lies that a text names without its folder; nothing where there are several of the name."""
    for name in names:
        parts = Path(name).parts
        if not name.endswith(".py") or ".." in parts or Path(name).is_absolute():
            continue
        found = [
            path
            for path in itertools.islice(root.rglob(parts[-1]), _MOST_FILES)
            if path.parts[-len(parts) :] == parts and not SKIPPED & set(path.parts)
        ]
        if len(found) == 1:
            yield found[0].parents[len(parts) - 1]


def is_script(path: Path) -> bool:
    """A Python file by its name, or by its first line."""
    if path.suffix == ".py":
        return path.is_file()
    if path.suffix or not path.is_file():
        return False
    try:
        first = read_regular(path, _BYTES)[:80].splitlines()[:1]
    except OSError:
        return False
    return bool(first) and first[0].startswith(b"#!") and b"python" in first[0]


def _arguments(words: list[str]) -> tuple[str, ...]:
    """Up to the end of the command; what the reader is to fill in is left out with its option."""
    kept: list[str] = []
    words = _with_dashes(words)
    for word in itertools.takewhile(lambda item: not _ENDS.fullmatch(item), words):
        is_option = word.startswith("-") and "=" not in word and "$" not in word
        if is_option or not _UNKNOWN.search(word):
            kept.append(word)
        elif "=" not in word and kept and kept[-1].startswith("-") and "=" not in kept[-1]:
            kept.pop()
    return tuple(kept)


def _with_dashes(words: list[str]) -> list[str]:
    """`-- epochs 3` is meant to be `--epochs 3`: nothing that a script takes begins with two dashes alone."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--":
            joined[-1] = f"--{word}"
        else:
            joined.append(word)
    return [word for word in joined if word != "--"]
