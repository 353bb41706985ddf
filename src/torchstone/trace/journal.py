"""`trace.jsonl`: append-only, a checksum on every line, safe under threads and processes.

A line is JSON whose last key, `sum`, is the CRC-32 of all before it. A writer holds the file's lock
while it takes a step number and appends. What a crash tore at the end is cut off by the next
writer and dropped by readers; a damaged line in the middle is told.
"""

from __future__ import annotations

import gc
import json
import os
import re
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.trace.record import VERSION, Record, plain_record

try:
    import fcntl
except ImportError:  # not POSIX: threads are safe, processes should not share a journal
    fcntl = None  # type: ignore[assignment]

NAME = "trace.jsonl"
_MOST_LINE = 64 << 20
_DECODER = json.JSONDecoder()
_TASK = re.compile(rb'"task": ("(?:[^"\\\\]|\\\\.){0,200}")')
_STEP = re.compile(rb'"step": (\d{1,9})[,}]')
"""What can still be read of a damaged line, as a rule."""
_LATEST = 1e11
"""Seconds; as a time it is in the year 5138."""


@dataclass(frozen=True, slots=True)
class Read:
    """What a journal holds, and what of it could not be read."""

    records: tuple[Record, ...]
    damaged: tuple[int, ...] = ()
    """Numbers of lines, from 1, whose checksum is wrong."""
    torn: int = 0
    """Bytes at the end that a crash left behind."""


@dataclass
class _Known:
    """What this process has read of the file so far."""

    offset: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    """Damaged lines that do not say whose step they were: it may have been anybody's."""
    last: dict[str, str] = field(default_factory=dict)


class Forked(Protocol):
    """Something that has to begin anew in a forked child."""

    def after_fork(self) -> None: ...


_FORKED: weakref.WeakSet[Forked] = weakref.WeakSet()


def renew_after_fork(item: Forked) -> None:
    """See to it that `after_fork` is called in every child that is forked while the item lives."""
    _FORKED.add(item)


def _renew() -> None:
    for item in tuple(_FORKED):
        item.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


class Journal:
    """The journal of one folder."""

    def __init__(self, folder: Path, fsync: bool = True) -> None:
        self.path = folder / NAME
        self._fsync = fsync
        self._known = _Known()
        self._lock = threading.Lock()
        self._handle = -1
        renew_after_fork(self)

    def after_fork(self) -> None:
        """In a forked child: a file of its own, because a lock belongs to an open file and the
        child would share its parent's; and a lock that no thread of the parent holds."""
        self._lock = threading.Lock()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def append(self, task: str, new_step: bool, make: Callable[[int, str], Record]) -> Record:
        """Append what `make(step, parent)` gives. With `new_step` the step is the next of the
        task, else the one it is at. When this returns, the record is in the file."""
        with self._lock, self._open() as handle:
            self._catch_up(handle)
            step = self._known.steps.get(task, self._known.lost) + (1 if new_step else 0)
            record = make(max(step, 1), self._known.last.get(task, ""))
            line = encode(record)
            _write(handle, line)
            if self._fsync:
                os.fsync(handle)
            self._known.offset += len(line)
            self._note(record)
            return record

    @contextmanager
    def _open(self) -> Iterator[int]:
        self._take_file()
        while not os.fstat(self._handle).st_nlink:  # somebody removed it: begin a new one
            os.close(self._handle)
            self._handle, self._known = -1, _Known()
            self._take_file()
        try:
            yield self._handle
        finally:
            if fcntl is not None:
                fcntl.flock(self._handle, fcntl.LOCK_UN)

    def _take_file(self) -> None:
        """Open the file, where it is not yet open, and lock it."""
        if self._handle < 0:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._handle = os.open(self.path, flags | getattr(os, "O_NOFOLLOW", 0), 0o644)
        if fcntl is not None:
            fcntl.flock(self._handle, fcntl.LOCK_EX)

    def _catch_up(self, handle: int) -> None:
        """Read what others appended; cut off what a crash tore."""
        size = os.fstat(handle).st_size
        if size < self._known.offset:  # the file was replaced by a shorter one
            self._known = _Known()
        if size == self._known.offset:
            return
        tail = os.pread(handle, size - self._known.offset, self._known.offset)
        whole = tail.rfind(b"\n") + 1
        if whole < len(tail):
            os.ftruncate(handle, self._known.offset + whole)
        for line in tail[:whole].splitlines():
            record = decode(line)
            if record is not None:
                self._note(record)
            else:
                self._note_damaged(line)
        self._known.offset += whole

    def _note_damaged(self, line: bytes) -> None:
        """A step whose line is damaged keeps its number: its files are still there."""
        steps = self._known.steps
        task, step = _TASK.search(line), _STEP.search(line)
        try:
            name = json.loads(task[1]) if task and step else None
        except ValueError:
            name = None
        if isinstance(name, str) and step:
            steps[name] = max(steps.get(name, 0), int(step[1]))
            return
        self._known.lost += 1
        for known in steps:
            steps[known] += 1

    def _note(self, record: Record) -> None:
        steps = self._known.steps
        steps[record.task] = max(steps.get(record.task, 0), record.step)
        self._known.last[record.task] = record.id

    def close(self) -> None:
        """Give the file back; a later append opens it again."""
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            os.close(self._handle)


def _write(handle: int, line: bytes) -> None:
    """All of the line or nothing: a full disk must not leave half of one."""
    size = os.fstat(handle).st_size
    done = 0
    try:
        while done < len(line):
            done += os.write(handle, line[done:])
    except OSError:
        os.ftruncate(handle, size)
        raise


def encode(record: Record) -> bytes:
    """A record as a line."""
    fields = {"version": VERSION, **to_data(record)}
    body = json.dumps(fields, ensure_ascii=False, allow_nan=False)[:-1]
    data = body.encode("utf-8", "backslashreplace")
    return data + b', "sum": "%08x"}\n' % zlib.crc32(data)


def decode(line: bytes) -> Record | None:
    """The record of a line; None when the checksum is wrong or it is none."""
    head, mark, tail = line.rstrip(b"\n").rpartition(b', "sum": "')
    if not mark or tail != b'%08x"}' % zlib.crc32(head):
        return None
    try:
        text = str(head, "utf-8") + "}"
        data, end = _DECODER.raw_decode(
            text
        )  # of the line itself: nothing is stripped or searched before it
        if end != len(text):
            return None
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    if data.get("version") != VERSION:
        raise InputError(
            NAME,
            f"version {data.get('version')!r}",
            Text(f"version {VERSION}", f"版本 {VERSION}"),
            Text("read it with the torchstone that wrote it", "请用写入它的 torchstone 版本读取"),
        )
    record = plain_record(data) or from_data(Record, data, NAME)
    return record if _has_times(record) else None


def _has_times(record: Record) -> bool:
    """Whether its times are numbers that a clock can show: a stranger may write anything."""
    seconds = record.call.seconds or 0.0
    return abs(record.time) < _LATEST and abs(seconds) < _LATEST  # false for NaN, too


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Hundreds of thousands of records make no cycles; looking for some takes longer than reading them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_journal(path: Path) -> Read:
    """All that a journal holds; never raises for damage, which is told instead."""
    records: list[Record] = []
    damaged: list[int] = []
    torn = 0
    with open(path, "rb") as file, _without_collecting():
        for number, line in enumerate(iter(lambda: file.readline(_MOST_LINE), b""), 1):
            if not line.endswith(b"\n"):
                torn = len(line)
                break
            record = decode(line)
            if record is None:
                damaged.append(number)
            else:
                records.append(record)
    return Read(tuple(records), tuple(damaged), torn)
