"""A pause must not hold an alert back: when no further step comes, what waits is judged all the same.

Evaluation may take minutes, and a program may be killed in it. A thread looks a few times a second
whether something waits for longer than it may.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

_LOOK_SECONDS = 0.25


class Waiting(Protocol):
    """What may have work left in a pause."""

    closed: bool

    def judge_in_pause(self) -> None: ...


class PauseThread:
    """Looks after one judge, for as long as it lives."""

    def __init__(self, judge: Waiting, guard: Callable[[Callable[[], object]], None]) -> None:
        self._judge = weakref.ref(judge)
        self._guard = guard
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Something waits; a forked child has no thread any more."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=_look, args=(self._judge, self._guard), name="torchstone-watch", daemon=True
            )
            self._thread.start()


def _look(
    reference: weakref.ref[Waiting], guard: Callable[[Callable[[], object]], None]
) -> None:  # fmt: skip
    while True:
        time.sleep(_LOOK_SECONDS)
        judge = reference()
        if judge is None or judge.closed:
            return
        guard(judge.judge_in_pause)
        del judge  # it may go while we sleep
