"""Where a thread is, looked at every few milliseconds: what hooks do not see has a place, too."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from types import FrameType

EVERY_SECONDS = 0.005
"""One look costs 20 µs: less than half a percent of the time."""
_FRAMES = 200
_CALLERS = 8
_WAITING = (
    "/selectors.py",
    "/threading.py",
    "/queue.py",
    "/multiprocessing/connection.py",
    "/multiprocessing/queues.py",
    "/multiprocessing/popen_fork.py",
    "/concurrent/futures/_base.py",
)
"""Code that waits for another process or thread where it is the innermost that runs: a loader without
workers has some of it around its own work."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A line of the program, and what the program does there that is not its own code."""

    file: str
    line: int
    function: str
    doing: str = ""
    """`import`, `wait`, or empty."""
    callers: tuple[str, ...] = ()
    """The functions of the program around it, the nearest first."""


class ThreadSampler:
    """Nanoseconds by spot, for the thread that starts it."""

    def __init__(
        self, is_user_file: Callable[[str], bool], clock: Callable[[], int] = perf_counter_ns
    ) -> None:
        self._is_user_file = is_user_file
        self._clock = clock
        self._last = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.spots: Counter[Spot] = Counter()

    def start(self) -> None:
        self._last = self._clock()
        watched = threading.get_ident()
        self._thread = threading.Thread(target=self._run, args=(watched,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self, watched: int) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            self.look(sys._current_frames().get(watched))

    def look(self, frame: FrameType | None) -> None:
        """The time since the last look belongs to where the thread is now."""
        now = self._clock()
        if frame is not None:
            self.spots[self.spot(frame)] += now - self._last
        self._last = now

    def spot(self, frame: FrameType) -> Spot:
        """The innermost line of the program in this stack."""
        innermost = frame.f_code.co_filename.replace("\\", "/")
        doing = "wait" if innermost.endswith(_WAITING) else ""
        users: list[FrameType] = []
        walked: FrameType | None = frame
        for _ in range(_FRAMES):
            if walked is None or len(users) > _CALLERS:
                break
            name = walked.f_code.co_filename
            if self._is_user_file(name):
                users.append(walked)
            elif name.startswith("<frozen importlib"):
                doing = "import"
            walked = walked.f_back
        if not users:
            return Spot("", 0, "", doing)
        first, *outer = users
        names = tuple(caller.f_code.co_qualname for caller in outer)
        return Spot(
            first.f_code.co_filename, first.f_lineno, first.f_code.co_qualname, doing, names
        )
