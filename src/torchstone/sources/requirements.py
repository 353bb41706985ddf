"""The packages that a project asks for, as its own files say; read, never run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.files import read_regular

_BYTES = 200_000
_LEVELS = 4
"""Folders above a script in which the project's files are looked for."""
_PLAIN = (
    "requirements.txt",
    "requirements.in",
    "requirements/base.txt",
    "requirements/requirements.txt",
)
_TABLES = ("environment.yml", "environment.yaml", "conda.yml")
_ENTRY = re.compile(
    r"^([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*((?:[=<>!~]=?=?\s*[\w.*+!-]+\s*,?\s*)*)"
)
_QUOTED = re.compile(r"""["']([A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?\s*(?:[=<>!~][^"']*)?)["']""")
_SETUP = re.compile(r"(?:install_requires|requirements|REQUIREMENTS)\s*=\s*\[(.*?)\]", re.S)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One package, by the name of its distribution, with the versions that are admitted."""

    name: str
    versions: str = ""

    def __str__(self) -> str:
        return f"{self.name}{self.versions}"


def declared_requirements(folder: Path) -> tuple[Requirement, ...]:
    """All that the nearest files with requirements name, each package once."""
    at = folder.resolve()
    for _ in range(_LEVELS):
        found = {item.name.lower().replace("_", "-"): item for item in _declared(at)}
        if found:
            return tuple(found.values())
        if (at / ".git").exists() or at.parent == at:
            break
        at = at.parent
    return ()


def _declared(folder: Path) -> Iterator[Requirement]:
    for name in (*_PLAIN, *(path.name for path in sorted(folder.glob("requirements*.txt")))):
        for line in _read(folder / name).splitlines():
            yield from _entry(line)
    for text in _pyproject(folder / "pyproject.toml"):
        yield from _entry(text)
    for block in _SETUP.findall(_read(folder / "setup.py")):
        for text in _QUOTED.findall(block):
            yield from _entry(text)
    for name in _TABLES:
        for line in _read(folder / name).splitlines():
            if line.lstrip().startswith("- ") and "::" not in line:
                yield from _entry(re.sub(r"^(\w[\w.-]*)=(\d)", r"\1==\2", line.strip()[2:].strip()))


def _entry(line: str) -> Iterator[Requirement]:
    text = line.split("#")[0].split(";")[0].strip()
    match = _ENTRY.match(text)
    is_place = "://" in text or "/" in text or " @ " in text
    if (
        match
        and not is_place
        and not text.endswith(":")
        and match[1].lower() not in ("python", "pip")
    ):
        yield Requirement(match[1], re.sub(r"\s+", "", match[2]).rstrip(","))


def _pyproject(path: Path) -> list[str]:
    try:
        table = tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError:
        return []
    listed = (
        table.get("project", {}).get("dependencies", [])
        if isinstance(table.get("project"), dict)
        else []
    )
    tools = table.get("tool", {}) if isinstance(table.get("tool"), dict) else {}
    poetry = (
        tools.get("poetry", {}).get("dependencies", {})
        if isinstance(tools.get("poetry"), dict)
        else {}
    )
    named = (
        [
            f"{name}=={value[1:]}"
            if isinstance(value, str) and value.startswith("==")
            else str(name)
            for name, value in poetry.items()
        ]
        if isinstance(poetry, dict)
        else []
    )
    return [str(item) for item in listed] + named if isinstance(listed, list) else named


def _read(path: Path) -> str:
    try:
        return read_regular(path, _BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
