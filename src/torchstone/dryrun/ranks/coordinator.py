"""Listens to all ranks at once, matches what they post, and sees when nobody can go on."""

from __future__ import annotations

import json
import selectors
import time
from dataclasses import dataclass, field
from typing import Any

from torchstone.core.codec import from_data
from torchstone.core.place import Place
from torchstone.dryrun.ranks.matching import Disagreement, Match, Matcher
from torchstone.dryrun.ranks.posts import Post
from torchstone.dryrun.ranks.process.values import results
from torchstone.dryrun.ranks.wire import Wire
from torchstone.dryrun.record import Record


@dataclass(frozen=True, slots=True)
class Blocked:
    """A rank that cannot go on, and for whom it waits."""

    post: Post
    waits_for: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one run of all ranks."""

    answers: str
    posts: dict[int, tuple[Post, ...]]
    records: dict[int, Record]
    disagreements: tuple[Disagreement, ...]
    blocked: tuple[Blocked, ...]
    left_over: tuple[Post, ...]
    unawaited: tuple[Post, ...]
    matches: int
    died: tuple[int, ...] = ()
    timed_out: bool = False


@dataclass
class _Rank:
    wire: Wire
    posts: list[Post] = field(default_factory=list)
    waiting: int | None = None
    done: bool = False
    died: bool = False
    record: Record | None = None
    unawaited: tuple[int, ...] = ()

    def wait(self, number: int) -> None:
        """It waits for the result of one of its posts."""
        self.waiting = number

    def go_on(self) -> None:
        """It has its result, or is told that none comes."""
        self.waiting = None

    def die(self) -> None:
        """It is gone without a word."""
        self.done = self.died = True
        self.waiting = None

    def finish(self, unawaited: tuple[int, ...], record: Record) -> None:
        """It has come to its end."""
        self.done, self.unawaited, self.record = True, unawaited, record


class Coordinator:
    """One run of all ranks that are present."""

    def __init__(self, wires: dict[int, Wire], answers: str, seconds: float) -> None:
        self._ranks = {rank: _Rank(wire) for rank, wire in wires.items()}
        self._matcher = Matcher(wires)
        self._answers = answers
        self._deadline = time.monotonic() + seconds
        self._values: dict[tuple[int, int], bytes | None] = {}
        self._results: dict[tuple[int, int], bytes | None] = {}
        self._blocked: tuple[Blocked, ...] = ()
        self._over = False
        self._timed_out = False

    def run(self) -> Played:
        """Until every rank has ended."""
        selector = selectors.DefaultSelector()
        for number, rank in self._ranks.items():
            selector.register(rank.wire, selectors.EVENT_READ, number)
        open_ranks = set(self._ranks)
        while open_ranks:
            events = selector.select(timeout=1.0)
            for key, _ in events:
                number = key.data
                if self._read(number):
                    selector.unregister(key.fileobj)
                    open_ranks.discard(number)
            self._look_for_standstill()
            if time.monotonic() > self._deadline and not self._over:
                self._timed_out = True
                self._release()
            if time.monotonic() > self._deadline + 15:
                break  # ranks that do not come back are killed by the caller
        return self._played()

    def _read(self, number: int) -> bool:
        """Take what one rank has sent; True when it is gone."""
        rank = self._ranks[number]
        try:
            messages, gone = rank.wire.receive()
        except ConnectionError:
            messages, gone = [], True
        for message, payload in messages:
            self._take(number, message, payload)
        if gone and not rank.done:
            rank.die()
        return gone

    def _take(self, number: int, message: dict[str, Any], payload: bytes) -> None:
        rank = self._ranks[number]
        if "post" in message:
            post = post_from(message["post"])
            rank.posts.append(post)
            self._values[number, post.number] = payload if message.get("known") else None
            for match in self._matcher.post(post):
                self._complete(match)
            if self._matcher.disagreements and not self._over:
                self._blocked = self._now_blocked()
                self._release()
        elif "wait" in message:
            rank.wait(int(message["wait"]))
            self._answer(number)
        elif "done" in message:
            record = from_data(Record, json.loads(payload), "record")
            rank.finish(tuple(message.get("unawaited", ())), record)

    def _complete(self, match: Match) -> None:
        known = {
            post.rank: value
            for post in match.posts
            if (value := self._values.pop((post.rank, post.number), None)) is not None
        }
        for rank, value in results(match, known).items():
            post = next(item for item in match.posts if item.rank == rank)
            self._results[rank, post.number] = value
            self._answer(rank)

    def _answer(self, number: int) -> None:
        rank = self._ranks[number]
        if rank.waiting is None:
            return
        key = (number, rank.waiting)
        if key in self._results:
            value = self._results.pop(key)
            rank.go_on()
            rank.wire.put({"ok": True, "known": value is not None}, value or b"")
        elif self._over:
            rank.go_on()
            rank.wire.put({"ok": False})

    def _look_for_standstill(self) -> None:
        live = [rank for rank in self._ranks.values() if not rank.done]
        if live and all(rank.waiting is not None for rank in live) and not self._over:
            self._blocked = self._now_blocked()
            self._release()

    def _now_blocked(self) -> tuple[Blocked, ...]:
        found = []
        for rank in self._ranks.values():
            if rank.waiting is not None:
                post = next(item for item in rank.posts if item.number == rank.waiting)
                found.append(Blocked(post, self._matcher.waiting_for(post)))
        return tuple(found)

    def _release(self) -> None:
        """End all ranks that wait or will wait: what comes after a standstill means nothing."""
        self._over = True
        for number in self._ranks:
            self._answer(number)

    def _played(self) -> Played:
        lost = [
            post
            for rank in self._ranks.values()
            for post in rank.posts
            if post.number in rank.unawaited
        ]
        return Played(
            self._answers,
            {number: tuple(rank.posts) for number, rank in self._ranks.items()},
            {number: rank.record for number, rank in self._ranks.items() if rank.record},
            tuple(self._matcher.disagreements),
            self._blocked,
            tuple(self._matcher.left_over()),
            tuple(lost),
            len(self._matcher.matches),
            tuple(number for number, rank in self._ranks.items() if rank.died),
            self._timed_out,
        )


def post_from(data: dict[str, Any]) -> Post:
    """A post as it came over the wire."""
    values = dict(data)
    for name in ("members", "shape", "in_splits", "out_splits"):
        values[name] = tuple(values[name])
    values["stack"] = tuple(Place(**place) for place in values["stack"])
    return Post(**values)
