"""A run ends after a few optimizer steps, backward passes, or seconds."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from torchstone.core.text import Text
from torchstone.dryrun.session import Session
from torchstone.dryrun.settings import WALL_FACTOR
from torchstone.observe.training import TRAINING, BackwardBegins, StepBegins, StepEnds


def limit_run(session: Session) -> None:
    """End the program when it has done enough."""
    settings, counts = session.settings, session.counts

    def before_step(_: StepBegins) -> None:
        if counts.optimizer_steps >= settings.max_steps:
            most = settings.max_steps
            session.end("budget", Text(f"{most} optimizer steps", f" {most} 个优化步"))

    def after_step(_: StepEnds) -> None:
        counts.add("optimizer_steps")

    TRAINING.subscribe(before_step, StepBegins)
    TRAINING.subscribe(after_step, StepEnds)
    _count_backwards(session)
    _limit_seconds(session)


def _count_backwards(session: Session) -> None:
    """Programs that update weights by hand have no optimizer: their backward passes count.

    A pipeline schedule runs many in one step, on some ranks more than on others: those do not count, or
    a rank would be ended in the middle of a step that the others still need it for.
    """
    settings, counts = session.settings, session.counts

    def backward(_: BackwardBegins) -> None:
        counts.add("backwards", not _inside_a_pipeline(sys._getframe(1)))
        if counts.backwards > settings.max_backwards and not counts.optimizer_steps:
            most = settings.max_backwards
            session.end("budget", Text(f"{most} backward passes", f" {most} 次反向传播"))

    TRAINING.subscribe(backward, BackwardBegins)


def _inside_a_pipeline(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("torch.distributed.pipelining"):
            return True
        frame = frame.f_back
    return False


def _limit_seconds(session: Session) -> None:
    """After the time limit the process is left from its next line of Python on.

    The limit counts processor time, so that a busy machine changes no result; a program that only waits is ended
    by the clock.
    """

    def on_alarm(_: int, frame: FrameType | None) -> None:
        del frame
        session.run_out_of_time()

    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGPROF, on_alarm)
    start_clocks(session.settings.limit_seconds())


def start_clocks(seconds: float) -> None:
    """From now on so many seconds are left. Copies of a process do not inherit its timers."""
    signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.01))
    signal.setitimer(signal.ITIMER_REAL, max(WALL_FACTOR * seconds, 0.01))


def stop_clocks() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
