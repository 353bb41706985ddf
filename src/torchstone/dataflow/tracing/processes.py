"""Worker processes are traced too, forked or spawned: each writes its events, the parent reads."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from multiprocessing.util import Finalize, register_after_fork
from pathlib import Path
from typing import Any

from torchstone.dataflow.tracing.assemble import ThreadTrace, shown_constant
from torchstone.dataflow.tracing.callees import Callee
from torchstone.dataflow.tracing.messages import number_messages, stop_numbering
from torchstone.dataflow.tracing.notes import Note
from torchstone.dataflow.tracing.recorder import Event, Recorder, ThreadEvents, UnrecordedCalls
from torchstone.dataflow.tracing.sites import site_from
from torchstone.dataflow.tracing.values import ValueFacts

_OF_PROCESS = 1 << 40
"""Values that a worker made are numbered from its process id times this: none is used twice."""
WORKER = "worker "
"""What the name of a worker's thread begins with."""
_LAST = 100  # priority of what runs when a process ends: before multiprocessing cleans up
Links = dict[int, tuple[int, ...]]
"""Value that arrived from another process → the values that were sent."""


class WorkerTraces:
    """The files of the worker processes of one run; in a worker, the file of this one."""

    def __init__(self, recorder: Recorder, folder: Path | None = None) -> None:
        self._recorder = recorder
        self.folder = folder or Path(tempfile.mkdtemp(prefix="torchstone-flow-"))
        self._forked_at = 0
        self._process = 0 if folder else os.getpid()
        self._ended = False
        self.notes: list[Note] = []
        self.unrecorded: list[UnrecordedCalls] = []
        """Of all workers, once they have been read."""
        recorder.after_message = self.write_own
        register_after_fork(self, WorkerTraces.start_in_worker)
        number_messages(recorder.values, self._number_to_send)
        if folder is None:
            self._cleanup = weakref.finalize(self, _remove, str(self.folder), os.getpid())

    def start_in_worker(self) -> None:
        """In a new process: what the parent recorded stays with the parent."""
        if self._ended:
            return
        Finalize(None, self.write, exitpriority=_LAST)
        if self._process != os.getpid():  # a fork server has workers begin twice
            self._process = os.getpid()
            self._forked_at = self._recorder.values.next_number()
            self._recorder.start_anew()

    # ---- in a worker -------------------------------------------------------------------------

    def write_own(self) -> None:
        """Append what this thread did since the last time; other threads may be at work."""
        thread = self._recorder.state()
        if thread.events and thread.current == -1:
            self._append([thread])

    def write(self) -> None:
        self._append(self._recorder.threads)

    def _append(self, threads: Sequence[ThreadEvents]) -> None:
        if not self._forked_at:  # in the parent there is nothing to hand over
            return
        chunks = []
        for thread in threads:
            if thread.current == -1:  # nothing is under way
                chunks.append([self._event(event) for event in self._recorder.events_of(thread)])
                thread.events.clear()
        data = {
            "threads": chunks,
            "facts": self._new_facts(),
            "links": self._new_links(),
            "unrecorded": [item for thread in threads for item in self._unrecorded(thread)],
        }
        try:
            with open(self.folder / f"{os.getpid()}.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(data, default=str) + "\n")
        except OSError:  # the parent has ended its trace and removed the folder
            self._recorder.stop()

    def _unrecorded(self, thread: ThreadEvents) -> list[Any]:
        found, thread.unrecorded = thread.unrecorded, {}
        sites, callees = self._recorder.sites, self._recorder.callees.listed
        return [
            [astuple(sites[site]), astuple(callees[item.callee]), item.calls, item.own]
            for site, item in found.items()
        ]

    def _new_facts(self) -> dict[int, list[Any]]:
        facts = self._recorder.values.facts
        return {self._number(n): _facts_data(ValueFacts(*facts.pop(n))) for n in list(facts)}

    def _new_links(self) -> dict[int, tuple[int, ...]]:
        links = self._recorder.values.links
        return {self._number(n): links.pop(n) for n in list(links)}

    def _number_to_send(self, number: int) -> int:
        """What the receiver will know has been written before it arrives: a pool may end its workers
        as soon as it has their results."""
        self.write_own()
        return self._number(number)

    def _number(self, number: int) -> int:
        own = self._forked_at and number > self._forked_at
        return os.getpid() * _OF_PROCESS + number if own else number

    def _event(self, event: Event) -> list[Any]:
        site, callee = event.site, event.callee
        return [
            astuple(site), astuple(callee) if callee else None, event.parent, event.start, event.end,
            [self._number(n) for n in event.reads], [self._number(n) for n in event.makes],
            [self._number(n) for n in event.returns], [shown_constant(c) for c in event.constants],
            event.error, event.inner,
        ]  # fmt: skip

    def note_failure(self, error: Exception) -> None:
        """A worker that cannot be traced works on; the report says so."""
        path = self.folder / f"{os.getpid()}.failed"
        path.write_text(f"{type(error).__name__}: {error}", encoding="utf-8")

    # ---- in the parent -----------------------------------------------------------------------

    def end(self) -> None:
        self._ended = True
        stop_numbering(self._recorder.values)

    def read(self, facts: dict[int, ValueFacts], links: Links) -> list[ThreadTrace]:
        """What the workers wrote, with what their values are in `facts` and where they came from
        in `links`; their folder is removed."""
        found: list[ThreadTrace] = []
        for path in sorted(self.folder.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    chunk = json.loads(line)
                except ValueError:  # the worker was ended while it wrote
                    self.notes.append(_cut_off(path.stem))
                    continue
                facts.update({int(n): ValueFacts(*item) for n, item in chunk["facts"].items()})
                links.update({int(n): tuple(item) for n, item in chunk["links"].items()})
                self.unrecorded += [
                    UnrecordedCalls(site_from(site), Callee(*callee), calls, own)
                    for site, callee, calls, own in chunk["unrecorded"]
                ]
                for events in chunk["threads"]:
                    made = tuple(_event_from(item) for item in events)
                    found.append(ThreadTrace(f"{WORKER}{path.stem}", made, facts))
        for path in sorted(self.folder.glob("*.failed")):
            self.notes.append(_failed(path.stem, path.read_text(encoding="utf-8")))
        self._cleanup()
        return found


def follow_links(trace: ThreadTrace, links: Mapping[int, tuple[int, ...]]) -> ThreadTrace:
    """The same events, with values that arrived as the values that were sent."""
    if not links:
        return trace

    def sent(numbers: tuple[int, ...]) -> tuple[int, ...]:
        found: list[int] = []
        for number in numbers:
            found += sent(links[number]) if number in links else (number,)
        return tuple(dict.fromkeys(found))

    events = tuple(
        event._replace(
            reads=sent(event.reads), makes=sent(event.makes), returns=sent(event.returns)
        )
        for event in trace.events
    )
    return ThreadTrace(trace.name, events, trace.facts)


def _event_from(item: list[Any]) -> Event:
    site, callee, parent, start, end, reads, makes, returns, constants, error, inner = item
    return Event(
        site_from(site), Callee(*callee) if callee else None, parent, start, end, tuple(reads),
        tuple(makes), tuple(returns), tuple(constants), error, inner,
    )  # fmt: skip


def _facts_data(facts: ValueFacts) -> list[Any]:
    return [
        facts.name,
        facts.nbytes,
        [int(size) for size in facts.shape],
        str(facts.dtype),
        facts.kind,
    ]


def _cut_off(process: str) -> Note:
    return Note(
        f"worker {process} ended while it wrote its trace; its last batch is missing",
        f"工作进程 {process} 在写入追踪时结束；缺少其最后一个批次",
        "let the loader end by itself, or trace it with num_workers=0",
    )


def _failed(process: str, reason: str) -> Note:
    return Note(
        f"worker {process} is not traced: {reason}",
        f"工作进程 {process} 未被追踪：{reason}",
        "trace it with num_workers=0",
    )


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
