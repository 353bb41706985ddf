"""Work side by side; an interrupt ends what is running at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from torchstone.sandbox.run import end_all

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], items: Iterable[T], workers: int = 0) -> list[R]:
    """The results in the order of the items; at most four at once by default."""
    pool = ThreadPoolExecutor(workers or max(1, min(4, os.cpu_count() or 1)))
    try:
        futures = [pool.submit(work, item) for item in items]
        return [future.result() for future in futures]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        end_all()
        raise
    finally:
        pool.shutdown()
