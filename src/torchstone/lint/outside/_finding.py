"""A line of another tool as a finding."""

from __future__ import annotations

import os
from pathlib import Path

from torchstone.core.evidence import Command, Snippet
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.text import NOTHING, Message, Text


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
    line = source_line(where.path, where.line)
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


def source_line(path: str, line: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if number == line:
                    return text.rstrip("\r\n")[:240]
    except OSError:
        return ""
    return ""


def shown(path: str) -> str:
    """A path the way our own findings name it: relative to here where possible."""
    try:
        return (
            Path(os.path.relpath(path)).as_posix() if os.path.isabs(path) else Path(path).as_posix()
        )
    except ValueError:
        return path
