"""The packages that a project asks for: names and versions, each once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from torchstone.sources.requirements import stated_in

_LEVELS = 4
"""Folders above a script in which the project's files are looked for."""
_STATED = re.compile(
    r"^([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?([=<>!~][^;()]*)?\)?\s*(?:;.*)?$"
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One package, by the name of its distribution, with the versions that are admitted."""

    name: str
    versions: str = ""

    def __str__(self) -> str:
        return f"{self.name}{self.versions}"


def declared_requirements(folder: Path) -> tuple[Requirement, ...]:
    """All that the nearest files with requirements name; addresses and paths are left out."""
    at = folder.resolve()
    for _ in range(_LEVELS):
        found: dict[str, Requirement] = {}
        for text in stated_in(at, ""):
            match = _STATED.match(text.strip())
            if match and match[1].lower() not in ("python", "pip"):
                versions = re.sub(r"\s+", "", match[2] or "").rstrip(",")
                found.setdefault(
                    match[1].lower().replace("_", "-"), Requirement(match[1], versions)
                )
        if found:
            return tuple(found.values())
        if (at / ".git").exists() or at.parent == at:
            break
        at = at.parent
    return ()
