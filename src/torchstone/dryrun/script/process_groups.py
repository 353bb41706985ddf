"""A program that makes its own processes or a process group is run again, as ranks."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import torch.distributed as dist
import torch.multiprocessing as torch_processes
from torch.distributed import distributed_c10d as c10d

from torchstone.dryrun.record import NEEDS_RANKS
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session

_MOST_RANKS = 64
"""A larger job is run when `--world-size` asks for it: each rank takes memory and time."""


def follow_process_groups(session: Session) -> None:
    """End the run where the program says how many ranks it has."""
    join = c10d.init_process_group

    def init_process_group(*args: Any, **kwargs: Any) -> None:
        count = _ranks_of(*args, **kwargs)
        if count:
            session.end(NEEDS_RANKS, str(count))
        join(*args, **kwargs)

    def spawn(fn: Any, args: Any = (), nprocs: int = 1, *_: Any, **__: Any) -> NoReturn:
        if 0 < nprocs <= _MOST_RANKS:
            session.end(NEEDS_RANKS, str(nprocs))
        # they would run for real, without any of the answers
        error = RuntimeError(f"torch.multiprocessing.spawn with nprocs={nprocs}")
        error._dryrun_cause = "ranks"  # type: ignore[attr-defined]
        raise error

    put(c10d, "init_process_group", init_process_group)
    put(dist, "init_process_group", init_process_group)
    put(torch_processes, "spawn", spawn)
    put(torch_processes, "start_processes", spawn)


def _ranks_of(
    backend: Any = None, init_method: Any = None, timeout: Any = None, world_size: int = -1,
    rank: int = -1, *_: Any, **__: Any,
) -> int:  # fmt: skip
    """How many ranks the group has; 0 where only this rank of several was started."""
    del backend, init_method, timeout
    given = os.environ.get("WORLD_SIZE", "")
    count = world_size if world_size > 0 else int(given) if given.isdigit() else 0
    apart = count > 1 and rank >= 0 and "RANK" not in os.environ
    return 0 if apart or count > _MOST_RANKS else count
