"""Work in forked processes, limited by the CPU time that it uses and not by the clock."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

CPU_SECONDS = 40
"""Of one process: the script, its tests and all checks took at most 6 s on the example projects."""
_WALL_SECONDS = 160.0
"""For processes that wait without computing; four times the CPU time leaves a busy machine its share."""
_HARD_SECONDS = 1
"""Left after the first signal, which the script may have chosen to ignore."""
_POLL_SECONDS = 0.02


def answers_of(works: Sequence[Callable[[], str]]) -> list[tuple[str | None, bool]]:
    """What each returned, all at the same time; None where it did not, and whether time was up."""
    with tempfile.TemporaryDirectory(prefix="probe-") as folder:
        until = time.monotonic() + _WALL_SECONDS
        files = [Path(folder, f"{place}.json") for place in range(len(works))]
        children = [_fork(work, file) for work, file in zip(works, files, strict=True)]
        late = [_wait(child, until) for child in children]
        texts = [file.read_text("utf-8") if file.is_file() else None for file in files]
        return list(zip(texts, late, strict=True))


def used_by_children() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fork(work: Callable[[], str], file: Path) -> int:
    child = os.fork()
    if child == 0:
        _child(work, file)
    return child


def _child(work: Callable[[], str], file: Path) -> None:
    code = 1
    try:
        os.setpgid(0, 0)
        _limit_cpu()
        tempfile.tempdir = str(file.parent)  # what the work leaves behind goes with this folder
        answer = work()
        part = file.with_suffix(".part")
        part.write_text(answer, "utf-8")
        part.rename(file)  # whole or not there
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _limit_cpu() -> None:
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    wanted = (CPU_SECONDS, CPU_SECONDS + _HARD_SECONDS)
    known = wanted if hard == resource.RLIM_INFINITY else tuple(min(hard, one) for one in wanted)
    resource.setrlimit(resource.RLIMIT_CPU, (known[0], known[1]))


def _wait(child: int, until: float) -> bool:
    """Until it ends; whether its CPU time or the time to wait for it was up."""
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            return ended_by in (signal.SIGXCPU, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True
