"""The times that a watch rests on: an argument, so that a test can hold them still."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Two times in seconds: that of the wall, and that which this thread has been at work."""

    now: Callable[[], float] = time.monotonic
    at_work: Callable[[], float] = time.thread_time
    """What others do on a busy machine is not in it; it is slow to ask."""
