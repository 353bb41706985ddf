"""Ranks compare a few numbers of a step, off the critical path, and name the one that differs.

Every `ranks_every` steps each rank starts one small asynchronous gather on a process group of its
own; what has arrived is looked at in a later step. Nobody ever waits for it.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

import torch
import torch.distributed as dist

from torchstone.core.text import Text
from torchstone.observe.compat.groups import default_store
from torchstone.watch.listen.optimizer_reader import OptimizerReader
from torchstone.watch.measure.call import RankRow, RankRows
from torchstone.watch.record.log import log_line

_WAIT_SECONDS = 30.0
_MOST_FLYING = 8
_numbers = itertools.count()


@dataclass(slots=True)
class _Flight:
    step: int
    work: Any
    rows: list[torch.Tensor]
    mine: torch.Tensor
    """Kept until the gather is over: the backend reads from it."""


class Ranks:
    """This process among the others that watch the same training."""

    def __init__(self, every: int, strict: bool, sharded: bool, lang: str) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.strict = strict
        """Replicas by construction (DDP): their weights must be equal, their batches must not."""
        self.sharded = sharded
        self._every = every
        self._lang = lang
        self._group: Any = None
        self._flying: deque[_Flight] = deque()
        self._names = f"torchstone/watch/{next(_numbers)}"

    def join(self) -> None:
        """Meet the other ranks; without all of them nothing is compared, and that is said."""
        store = default_store()
        store.set(f"{self._names}/{self.rank}", "here")
        wanted = [f"{self._names}/{rank}" for rank in range(self.size)]
        end = time.monotonic() + _WAIT_SECONDS
        while not store.check(wanted):
            if time.monotonic() > end:
                absent = [r for r, key in enumerate(wanted) if not store.check([key])]
                text = Text(
                    f"ranks are not compared: ranks {absent} are not monitored",
                    f"不比较各 rank：{absent} 未启用监控",
                )
                log_line(f"[Monitor] {text.get(self._lang)}", logging.WARNING)
                return
            time.sleep(0.01)
        self._group = dist.new_group(backend="gloo")

    def exchange(self, row: RankRow, step: int) -> RankRows:
        """Start a gather when it is time, and give what has arrived."""
        if self._group is None:
            return RankRows()
        arrived = self._arrived()
        if step % self._every == 0:
            self._send(row, step)
        return arrived

    def _send(self, row: RankRow, step: int) -> None:
        if len(self._flying) >= _MOST_FLYING:
            self._group = None
            text = Text(
                "ranks are no longer compared: some ranks are far behind",
                "不再比较各 rank：部分 rank 严重落后",
            )
            log_line(f"[Monitor] {text.get(self._lang)}", logging.WARNING)
            return
        mine = torch.tensor(astuple(row), dtype=torch.float64)
        rows = [torch.empty_like(mine) for _ in range(self.size)]
        work = dist.all_gather(rows, mine, group=self._group, async_op=True)
        self._flying.append(_Flight(step, work, rows, mine))

    def _arrived(self) -> RankRows:
        found = RankRows()
        while self._flying and self._flying[0].work.is_completed():
            rows = tuple(RankRow(*row.tolist()) for row in self._flying.popleft().rows)
            found = RankRows(rows, self.strict, self.sharded)
        return found


def row_of(
    step: int, loss: float | None, batch: int, optimizers: Iterable[OptimizerReader], alerts: int
) -> RankRow:
    """What this rank says of a step."""
    optimizers = list(optimizers)
    digest = 0
    for reader in optimizers:
        digest = (digest * 1000003) ^ reader.digest
    main = optimizers[0] if optimizers else None
    return RankRow(
        step=float(step),
        loss=float("nan") if loss is None else loss,
        norm=main.norm if main else float("nan"),
        rate=main.rate if main else 0.0,
        digest=float(digest & (2**52 - 1)),  # a double holds so many bits exactly
        batch=float(batch),
        alerts=float(alerts),
    )


def join_ranks(models: Iterable[Any], every: int, lang: str) -> Ranks | None:
    """Join the other ranks; None in a single process."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() < 2:
        return None
    models = list(models)
    replicas = any(isinstance(m, torch.nn.parallel.DistributedDataParallel) for m in models)
    sharded = any(hasattr(p, "to_local") for m in models for p in m.parameters())
    ranks = Ranks(every, replicas, sharded, lang)
    ranks.join()
    return ranks
