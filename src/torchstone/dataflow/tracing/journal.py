"""Events are written to a file while the program runs: what ends it does not end its trace.

Every line has a checksum. A line that was cut off, and what follows it, is left out when the file
is read; so is a file that was finished as a whole, because the graph is then in a file of its own.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import IO, Any

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.text import Text
from torchstone.dataflow.graph.export import keep_out_of_version_control
from torchstone.dataflow.tracing.assemble import ThreadTrace, shown_constant
from torchstone.dataflow.tracing.callees import Callee
from torchstone.dataflow.tracing.recorder import NOTHING, Event, Recorder
from torchstone.dataflow.tracing.sites import Site, site_from
from torchstone.dataflow.tracing.values import ValueFacts

SCHEMA = "torchstone/flow-journal/1"
_EVERY_SECONDS = 0.5
_LARGEST = 2 * 2**30
_MOST_EVENTS = 100_000_000
"""A place beyond this was not written here: the list would not fit into memory."""


def journal_of(path: Path) -> Path:
    """The file that is written while the trace of this name is made."""
    return path.with_name(path.name + ".partial")


class Journal:
    """Writes what a recorder has, twice a second and whenever it is asked."""

    def __init__(self, path: Path, recorder: Recorder, about: Mapping[str, str]) -> None:
        self._recorder = recorder
        self._written: dict[int, _Written] = {}
        self._sites = self._callees = self._facts = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._process = os.getpid()
        self._path = path
        self._about = about
        self._file: IO[str] | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_SECONDS):
            self.write()

    def write(self) -> None:
        """Append what was finished since the last time."""
        if os.getpid() != self._process:  # a forked worker has a file of its own
            return
        with self._lock:
            if self._file is None and any(thread.events for thread in self._recorder.threads):
                self._file = self._opened()
            if self._file is not None and not self._file.closed:
                self._file.write(_line(self._news()))
                self._file.flush()

    def _opened(self) -> IO[str]:
        """With the first event: a program that never began leaves no file."""
        keep_out_of_version_control(self._path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("w", encoding="utf-8")
        file.write(_line({"schema": SCHEMA, **self._about}))
        return file

    def close(self) -> None:
        self._stop.set()
        self.write()
        if self._file is not None:
            self._file.close()

    def _news(self) -> dict[str, Any]:
        recorder = self._recorder
        threads = {}
        for place, thread in enumerate(list(recorder.threads)):
            new = self._written.setdefault(place, _Written()).new(thread.events)
            if new:
                threads[place] = {"name": thread.name, "events": new}
        # after the events, so that everything that they name is there
        sites = recorder.sites[self._sites :]
        callees = recorder.callees.listed[self._callees :]
        numbers = list(recorder.values.facts)[self._facts :]
        self._sites += len(sites)
        self._callees += len(callees)
        self._facts += len(numbers)
        facts = {number: _plain(recorder.values.facts.get(number)) for number in numbers}
        return {
            "sites": [astuple(site) for site in sites],
            "callees": [astuple(callee) for callee in callees],
            "facts": facts,
            "threads": threads,
        }


def _line(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, default=str, ensure_ascii=False, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


class _Written:
    """Which events of a thread are in the file."""

    def __init__(self) -> None:
        self._upto = 0
        self._open: set[int] = set()
        """Places of calls that had not ended."""

    def new(self, events: list[Any]) -> list[Any]:
        count = len(events)
        places = [*sorted(self._open), *range(self._upto, count)]
        done = [(place, events[place]) for place in places if place < len(events)]
        self._upto = count
        self._open = {place for place, event in done if event is None}
        return [
            (place, *event[:8], [shown_constant(item) for item in event[8]], *event[9:])
            for place, event in done
            if event is not None
        ]


def _plain(facts: tuple[Any, ...] | None) -> list[Any]:
    name, nbytes, shape, dtype, kind = facts or ("", 0, (), "", "")
    return [name, nbytes, [int(size) for size in shape], str(dtype), kind]


def read_journal(path: Path) -> tuple[dict[str, Any], list[ThreadTrace]]:
    """What the first line says, and the events of every thread."""
    try:
        lines = _checked_lines(path)
        about: dict[str, Any] = next(lines, {})
        if about.get("schema") != SCHEMA:
            raise ValueError(f"schema {about.get('schema')!r}")
        return about, _traces(lines)
    except OSError as error:
        given = error.strerror or type(error).__name__
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        given = f"not the journal of a trace ({type(error).__name__}: {error})"[:200]
    raise InputError(
        str(path), given, Text("a trace that was being written", "写入中的追踪文件"),
        Text("make it anew with `torchstone flow trace`", "请用 `torchstone flow trace` 重新生成"),
    )  # fmt: skip


def _traces(lines: Iterator[dict[str, Any]]) -> list[ThreadTrace]:
    sites: list[Site] = []
    callees: list[Callee] = []
    facts: dict[int, ValueFacts] = {}
    threads: dict[str, tuple[str, dict[int, Any]]] = {}
    for chunk in lines:
        sites += map(site_from, chunk["sites"])
        callees += [Callee(*item) for item in chunk["callees"]]
        facts |= {int(number): ValueFacts(*item) for number, item in chunk["facts"].items()}
        for key, thread in chunk["threads"].items():
            _, events = threads.setdefault(key, (thread["name"], {}))
            events.update({item[0]: item[1:] for item in thread["events"]})
    return [
        ThreadTrace(name, _events(found, sites, callees), facts) for name, found in threads.values()
    ]


def _checked_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in read_regular(path, _LARGEST).splitlines():
        checksum, _, text = line.partition(b" ")
        if f"{zlib.crc32(text):08x}".encode() != checksum:
            return
        yield json.loads(text)


def _events(found: dict[int, Any], sites: list[Site], callees: list[Callee]) -> list[Event]:
    last = max(found, default=-1)
    if last > _MOST_EVENTS:
        raise ValueError(f"event {last}")
    made = [NOTHING] * (last + 1)
    for place, (site, callee, parent, start, end, reads, makes, returns, *rest) in found.items():
        constants, error, inner = rest
        made[place] = Event(
            sites[site], callees[callee] if callee >= 0 else None, parent, start, end, tuple(reads), tuple(makes),
            tuple(returns), tuple(constants), error, inner,
        )  # fmt: skip
    return made
