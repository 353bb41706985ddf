"""One record of a journal: what was done, by whom, with what, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class Call:
    """What is known of a call of a language model."""

    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    finish_reason: str = ""


NO_CALL = Call()


@dataclass(frozen=True, slots=True)
class Kept:
    """A text: its file, relative to the operator's folder, and its content's hash; a short one
    that has no file of its own stands in the journal itself."""

    file: str
    sha256: str
    size_bytes: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One step, or the conductor's look at one."""

    id: str
    task: str
    op: str
    step: int
    action: str
    """Name of the action, or `START`, `CheckDesigner`, `CheckCoder`, `AnalyzeError`."""
    role: str
    """`start`, `agent`, `verifier`, `conductor` or `exit`."""
    time: float
    """Seconds since 1970, when it was written."""
    parent: str = ""
    """The record before it in the task, or the one it judges."""
    parsed: bool = True
    """False when the answer could not be read and is kept as it came."""
    verdict: str = ""
    texts: Mapping[str, Kept] = field(default_factory=dict)
    call: Call = NO_CALL
    versions: Mapping[str, str] = field(default_factory=dict)
    version: int = VERSION
