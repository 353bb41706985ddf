"""One record of a journal: what was done, by whom, with what, and how it ended."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchstone.core.codec import from_data

VERSION = 1


@dataclass(frozen=True, slots=True)
class Call:
    """What is known of a call of a language model."""

    model: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
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


class KeptTexts(Mapping[str, Kept]):
    """The texts of a record as the journal has them, each read when it is asked for: of a long run few are."""

    __slots__ = ("_data",)

    def __init__(self, data: Mapping[str, object]) -> None:
        self._data = data

    def __getitem__(self, name: str) -> Kept:
        return from_data(Kept, self._data[name], "trace.jsonl")

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


_TYPES: dict[str, dict[str, type]] = {
    "record": {
        "id": str, "task": str, "op": str, "step": int, "action": str, "role": str, "time": float, "parent": str,
        "parsed": bool, "verdict": str, "texts": dict, "call": dict, "versions": dict, "version": int,
    },
    "call": {"model": str, "input_tokens": int, "output_tokens": int, "seconds": float, "finish_reason": str},
}  # fmt: skip
_NEEDED = {
    "record": frozenset({"id", "task", "op", "step", "action", "role", "time"}),
    "call": frozenset(),
}


@functools.lru_cache(1024)
def _fit(what: str, names: tuple[str, ...], types: tuple[type, ...]) -> bool:
    """Whether fields of these names and types make one: records of a run are alike, so that few are asked for."""
    known = _TYPES[what]
    right = all(known.get(name) is kind for name, kind in zip(names, types, strict=True))
    return right and _NEEDED[what] <= set(names)


def _is_plain(what: str, item: object) -> bool:
    return type(item) is dict and _fit(what, tuple(item), tuple(map(type, item.values())))


def plain_record(data: dict[str, Any]) -> Record | None:
    """A record whose fields are all of their own types, read in a fraction of the time that a reader of any class
    takes; None where something is not as it is written here, so that the careful reader says what."""
    if not _is_plain("record", data):
        return None
    call = data.get("call")
    if call is not None and not _is_plain("call", call):
        return None
    if not set(map(type, data.get("versions", {}).values())) <= {str}:
        return None
    texts = KeptTexts(data.get("texts", {}))
    return Record(**{**data, "texts": texts, "call": Call(**call) if call else NO_CALL})
