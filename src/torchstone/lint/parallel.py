"""Files read by several processes at once. Each sees the whole project, so the results are the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from torchstone.lint.result import Result
from torchstone.sources.discover import File

Results = dict[str, Result]
Progress = Callable[[int, int, str], None]
Read = Callable[[list[File], Progress | None], Results]
LEAST_BYTES = 400_000
"""Of source for each process: reading it takes about half a second, a process costs some hundredths."""
MOST = 8
"""Each process keeps syntax trees of its own, up to some 400 MB."""


def processes_for(size: int, wanted: int | None) -> int:
    """How many processes pay for so many bytes of source; `wanted` is taken as it is."""
    if not hasattr(os, "fork"):
        return 1
    if wanted is not None:
        return max(wanted, 1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # fmt: skip
    return max(1, min(cores, MOST, size // LEAST_BYTES))


def slices(files: Sequence[File], sizes: Sequence[int], count: int) -> list[list[File]]:
    """Neighbours together, for they import each other; about the same number of bytes in each."""
    share = sum(sizes) / count or 1
    parts: list[list[File]] = [[] for _ in range(count)]
    seen = 0
    for file, size in zip(files, sizes, strict=True):
        parts[min(int(seen / share), count - 1)].append(file)
        seen += size
    return parts


def read_slices(parts: list[list[File]], read: Read, progress: Progress | None) -> Results:
    """The first slice here, every other in a child; what a child that died leaves is read here too."""
    if len(parts) == 1:
        return read(parts[0], progress)
    found: Results = {}
    with _children(parts[1:], read) as children:
        found.update(read(parts[0], progress))
        for part, answer in children:
            found.update(_received(answer) or read(part, progress))
    return found


@contextmanager
def _children(parts: list[list[File]], read: Read) -> Iterator[list[tuple[list[File], BinaryIO]]]:
    """A running child for each slice; none is left behind, whatever happens."""
    import signal  # one process needs none of this, and start-up counts

    sys.stdout.flush()
    sys.stderr.flush()
    started: list[tuple[int, list[File], BinaryIO]] = []
    try:
        for part in parts:
            ours, theirs = os.pipe()
            pid = os.fork()
            if not pid:
                os.close(ours)
                _answer(theirs, part, read)
            os.close(theirs)
            started.append((pid, part, os.fdopen(ours, "rb")))
        yield [(part, answer) for _, part, answer in started]
    except BaseException:
        for pid, _, _ in started:
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        for pid, _, answer in started:
            answer.close()
            os.waitpid(pid, 0)


def _answer(pipe: int, part: list[File], read: Read) -> None:
    """The whole life of a child: nothing of the parent's ending may run in it."""
    import pickle
    import signal

    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with os.fdopen(pipe, "wb") as stream:
            pickle.dump(read(part, None), stream, pickle.HIGHEST_PROTOCOL)
        code = 0
    finally:
        os._exit(code)


def _received(answer: BinaryIO) -> Results | None:
    """What a child of this process wrote; None when it died before its end."""
    import pickle

    data = answer.read()
    try:
        found: Results = pickle.loads(data)
    except (pickle.UnpicklingError, EOFError):
        return None
    return found
