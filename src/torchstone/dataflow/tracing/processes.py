"""Forked worker processes (DataLoader) are traced too: each writes its events, the parent reads."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from dataclasses import astuple
from multiprocessing.util import Finalize, register_after_fork
from pathlib import Path
from typing import Any

from torchstone.core.text import Text
from torchstone.dataflow.graph.assemble import ThreadTrace
from torchstone.dataflow.tracing.callees import Callee
from torchstone.dataflow.tracing.recorder import Event, Recorder
from torchstone.dataflow.tracing.sites import Site
from torchstone.dataflow.tracing.values import ValueFacts

_OF_PROCESS = 1 << 40
"""Values that a worker made are numbered from its process id times this: none is used twice."""
_LAST = 100  # priority of what runs when a process ends: before multiprocessing cleans up


class WorkerTraces:
    """The files of the worker processes of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._folder = Path(tempfile.mkdtemp(prefix="torchstone-flow-"))
        self._forked_at = 0
        self._ended = False
        self.notes: list[Text] = []
        recorder.after_message = self.write
        register_after_fork(self, WorkerTraces.start_in_worker)
        self._cleanup = weakref.finalize(self, _remove, str(self._folder), os.getpid())

    def start_in_worker(self) -> None:
        """In a forked process: what the parent recorded stays with the parent."""
        if self._ended:
            return
        self._forked_at = self._recorder.values.next_number()
        self._recorder.start_anew()
        Finalize(None, self.write, exitpriority=_LAST)

    def write(self) -> None:
        """In a worker: append what happened since the last time. In the parent: nothing."""
        if not self._forked_at:
            return
        chunks = []
        for thread in self._recorder.threads:
            if thread.current == -1:  # nothing is under way
                chunks.append([self._event(event) for event in self._recorder.events_of(thread)])
                thread.events.clear()
        facts = self._recorder.values.facts
        mine = {
            self._number(n): _facts_data(ValueFacts(*item))
            for n, item in facts.items()
            if n > self._forked_at
        }
        for number in [n for n in facts if n > self._forked_at]:
            del facts[number]
        text = json.dumps({"threads": chunks, "facts": mine}, default=str)
        try:
            with open(self._folder / f"{os.getpid()}.jsonl", "a", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError:  # the parent has ended its trace and removed the folder
            self._recorder.stop()

    def _number(self, number: int) -> int:
        return number if number <= self._forked_at else os.getpid() * _OF_PROCESS + number

    def _event(self, event: Event) -> list[Any]:
        site, callee = event.site, event.callee
        return [
            astuple(site), astuple(callee) if callee else None, event.parent, event.start, event.end,
            [self._number(n) for n in event.reads], [self._number(n) for n in event.makes],
            [self._number(n) for n in event.returns], [str(c) for c in event.constants],
            event.error, event.key,
        ]  # fmt: skip

    def end(self) -> None:
        self._ended = True

    def read(self, facts: dict[int, ValueFacts]) -> list[ThreadTrace]:
        """What the workers wrote, with what their values are in `facts`; their folder is removed."""
        found: list[ThreadTrace] = []
        for path in sorted(self._folder.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    chunk = json.loads(line)
                except ValueError:  # the worker was ended while it wrote
                    self.notes.append(_cut_off(path.stem))
                    continue
                facts.update({int(n): ValueFacts(*item) for n, item in chunk["facts"].items()})
                for events in chunk["threads"]:
                    made = tuple(_event_from(item) for item in events)
                    found.append(ThreadTrace(f"worker {path.stem}", made, facts))
        self._cleanup()
        return found


def _event_from(item: list[Any]) -> Event:
    site, callee, parent, start, end, reads, makes, returns, constants, error, key = item
    place = Site(site[0], site[1], site[2], site[3], site[4], tuple(site[5]), tuple(site[6]))
    return Event(
        place, Callee(*callee) if callee else None, parent, start, end, tuple(reads),
        tuple(makes), tuple(returns), tuple(constants), error, key,
    )  # fmt: skip


def _facts_data(facts: ValueFacts) -> list[Any]:
    return [
        facts.name,
        facts.nbytes,
        [int(size) for size in facts.shape],
        str(facts.dtype),
        facts.kind,
    ]


def _cut_off(process: str) -> Text:
    return Text(
        f"worker {process} ended while it wrote its trace; its last batch is missing",
        f"工作进程 {process} 在写入追踪时结束；缺少其最后一个批次",
    )


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
