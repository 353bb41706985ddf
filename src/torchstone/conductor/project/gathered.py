"""What one pass over the files of a project gathers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from torchstone.core.place import Place


@dataclass
class Gathered:
    """What one pass over all files gathers."""

    models: list[Place] = field(default_factory=list)
    loops: list[Place] = field(default_factory=list)
    data: list[Place] = field(default_factory=list)
    names: dict[str, list[Place]] = field(default_factory=dict)
    frameworks: set[str] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)
    entries: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    others: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    """Files that do not look like a start by themselves: whether their top level does work, and whether
    they are for a launcher."""
    training: set[str] = field(default_factory=set)
    """Files with a backward pass and an optimizer."""
    imports: dict[str, set[str]] = field(default_factory=dict)
    """Of every file, the dotted names of the modules that it may load."""
    tests: dict[str, int] = field(default_factory=dict)
    buildable: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    lines: int = 0


def relative(path: Path, root: Path) -> str:
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return path.as_posix()
