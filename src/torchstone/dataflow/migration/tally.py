"""Counts that survive the process that counted: of this process, and of those it started.

A forked or spawned worker may be ended at any moment, by a pool that has its results or by a
signal. So a worker keeps its counts in a file that is mapped into its memory, one for each process;
whoever asks adds them up.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import struct
import tempfile
import threading
import weakref
from collections import Counter
from pathlib import Path

Key = tuple[str, ...]
_SLOTS = 4096
"""Different counts of one worker: functions × fates, and the lines that fell back."""
_NUMBER = struct.Struct("d")


class Tally:
    """Numbers by key. With a `folder` it is that of a worker; without, that of the main process."""

    def __init__(self, folder: Path | None = None) -> None:
        self._counts: Counter[Key] = Counter()
        self._lock = threading.Lock()
        self._file: _CountFile | None = None
        if folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="torchstone-calls-"))
            self._process = os.getpid()
            weakref.finalize(self, _remove, self.folder, self._process)
        else:
            self.folder = folder
            self._process = 0

    def add(self, key: Key, amount: float = 1) -> bool:
        """True when the key is new to this process."""
        if os.getpid() != self._process:
            self._begin_in_worker()
        with self._lock:
            is_new = key not in self._counts
            self._counts[key] += amount  # type: ignore[assignment]
            if self._file is not None:
                self._file.set(key, self._counts[key])
        return is_new

    def _begin_in_worker(self) -> None:
        """What the parent counted stays with the parent, and its lock may have been held."""
        self._lock = threading.Lock()
        self._counts = Counter()
        self._file = _CountFile.create(self.folder)
        self._process = os.getpid()

    def total(self) -> Counter[Key]:
        with self._lock:
            counts = Counter(self._counts)
        if self._file is None:
            for names in sorted(self.folder.glob("*.names")):
                counts.update(_read(names))
        return counts


class _CountFile:
    """Keys as lines of one file, their numbers in another."""

    def __init__(self, names: Path, numbers: mmap.mmap) -> None:
        self._names = names
        self._numbers = numbers
        self._slots: dict[Key, int] = {}

    @classmethod
    def create(cls, folder: Path) -> _CountFile | None:
        """None where the parent has ended and its folder is gone: nobody will ask."""
        path = folder / f"{os.getpid()}.counts"
        try:
            with path.open("w+b") as file:
                file.truncate(_SLOTS * _NUMBER.size)
                return cls(path.with_suffix(".names"), mmap.mmap(file.fileno(), 0))
        except OSError:
            return None

    def set(self, key: Key, value: float) -> None:
        slot = self._slots.get(key)
        if slot is None:
            if len(self._slots) == _SLOTS:
                return
            slot = self._slots[key] = len(self._slots)
            try:
                with self._names.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(key, ensure_ascii=False) + "\n")
            except OSError:
                return
        _NUMBER.pack_into(self._numbers, slot * _NUMBER.size, value)


def _read(names: Path) -> Counter[Key]:
    found: Counter[Key] = Counter()
    numbers = names.with_suffix(".counts").read_bytes()
    for slot, line in enumerate(names.read_text("utf-8").splitlines(keepends=True)):
        if line.endswith("\n"):  # the worker may have been ended while it wrote
            (value,) = _NUMBER.unpack_from(numbers, slot * _NUMBER.size)
            found[tuple(json.loads(line))] += value
    return found


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
