"""A line of another tool as a finding."""

from __future__ import annotations

import os
from pathlib import Path

from torchstone.core.evidence import Command, Snippet
from torchstone.core.files import read_regular
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.text import NOTHING, Message, Text

_BYTES = 16 * 1024 * 1024


def foreign(
    tool: str,
    rule: str,
    severity: Severity,
    message: str,
    where: Location,
    known_fingerprint: str = "",
) -> Finding:
    """The tool's own words in both languages; the source line, if it can be read, as evidence."""
    name = f"{tool}/{rule}" if rule else tool
    line = source_line(where.path, where.line) if _is_near(where.path) else ""
    evidence = (
        Snippet(
            where.path,
            where.line,
            line,
            where.line,
            max(where.column - 1, 0),
            max(where.end_column - 1, 0),
        )
        if line
        else Command(tool, output=message)
    )
    mark = known_fingerprint or fingerprint(name, where.path, line or message)
    return Finding(
        name, tool, severity, Confidence.LIKELY,
        Message(name, Text(message, message)), Message("", NOTHING), Message("", NOTHING),
        where, (evidence,), mark, tool=tool,
    )  # fmt: skip


def _is_near(path: str) -> bool:
    """Below this folder: a foreign file may name any path, and must not have it quoted."""
    here = os.path.realpath(".")
    return os.path.realpath(path).startswith(here + os.sep)


def source_line(path: str, line: int) -> str:
    try:
        rows = read_regular(path, _BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return rows[line - 1].rstrip("\r")[:240] if 0 < line <= len(rows) else ""


def shown(path: str) -> str:
    """A path the way our own findings name it: relative to here where possible."""
    try:
        return (
            Path(os.path.relpath(path)).as_posix() if os.path.isabs(path) else Path(path).as_posix()
        )
    except ValueError:
        return path
