"""Which torch a project runs with, as its own requirements say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from torchstone.core.files import read_regular
from torchstone.core.pattern import pattern

Version = tuple[int, int]

_REQUIREMENT = pattern(r"^[ \t]*[\"']?torch[ \t]*(?:\[[^\]]*\])?\s*([=~!<>][^;#\"'\n]*)", re.M)
_CLAUSE = pattern(r"(==|~=|>=|>)\s*v?(\d{1,4})\.(\d{1,4})")
_BOUND = pattern(r"==|~=|<")
_FILES = ("requirements.txt", "requirements/base.txt", "setup.cfg", "setup.py", "environment.yml")
_LEVELS = 4
_BYTES = 200_000


class Requirement(NamedTuple):
    """What a project says of the torch it runs with."""

    oldest: Version
    open: bool
    """Whether everything from the oldest on is admitted, the newest release included."""


def parse_version(text: str) -> Version | None:
    match = re.match(r"^\s*v?(\d{1,4})\.(\d{1,4})", text)
    return (int(match[1]), int(match[2])) if match else None


def project_torch(folder: Path) -> Version | None:
    """The oldest torch that the nearest requirements admit; None when they do not say."""
    found = torch_requirement(folder)
    return found.oldest if found else None


def torch_requirement(folder: Path) -> Requirement | None:
    """The nearest requirement on torch; None when there is none."""
    at = folder.resolve()
    for _ in range(_LEVELS):
        found = _declared(at)
        if found is not None:
            return found
        if (at / ".git").exists() or at.parent == at:
            return None
        at = at.parent
    return None


def _declared(folder: Path) -> Requirement | None:
    texts = [_pyproject(folder / "pyproject.toml")]
    texts += [_read(folder / name) for name in _FILES]
    for text in texts:
        for match in _REQUIREMENT.finditer(text):
            clauses = [(int(a), int(b)) for _, a, b in _CLAUSE.findall(match[1])]
            if clauses:
                return Requirement(min(clauses), not _BOUND.search(match[1]))
    return None


def _read(path: Path) -> str:
    try:
        return read_regular(path, _BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _pyproject(path: Path) -> str:
    """The dependency strings, a line each; a broken file is the configuration reader's business."""
    text = _read(path)
    if "torch" not in text:
        return ""
    import tomllib

    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    project = data.get("project", {})
    groups = project.get("optional-dependencies", {}) if isinstance(project, dict) else {}
    lists = [project.get("dependencies", [])] if isinstance(project, dict) else []
    lists += groups.values() if isinstance(groups, dict) else []
    return "\n".join(item for rows in lists if isinstance(rows, list) for item in map(str, rows))
