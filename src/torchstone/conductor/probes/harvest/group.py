"""A process group without a network: ranks hand tensors to each other through a file store."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch.futures import Future

from torchstone.observe.compat.groups import Work, bindings
from torchstone.observe.ranks import RECV, SEND, Collective, StandInGroup

NAME = "probes"
_SECONDS = 30.0
"""A rank that waits longer for one that runs has lost it; they compute alike, so a busy machine delays all."""
_LOOK_SECONDS = 0.5
_ENDED = "ended"
_HEARD = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")
"""Kinds that carry what a program computes with; the others move objects and keep time."""
_save, _load = torch.save, torch.load
Rows = Sequence[Sequence[torch.Tensor]]
"""The tensors of each rank, in order of rank."""


def use_own_group(rank: int, world: int, exchange: str) -> None:
    """Every process group that the script makes is one of these."""
    if not dist.is_available():
        return
    dist.Backend.register_backend(NAME, _make_group, devices=["cpu", "cuda"])
    begin, sub_group = dist.init_process_group, dist.new_group
    path = exchange or tempfile.mktemp(prefix="exchange-")  # made by the store itself

    def init_process_group(*_: Any, **__: Any) -> None:
        if not dist.is_initialized():
            store = dist.FileStore(path, world)  # type: ignore[attr-defined]
            begin(NAME, store=store, rank=rank, world_size=world)

    def new_group(ranks: Any = None, *_: Any, **__: Any) -> Any:
        return sub_group(ranks, backend=NAME)

    dist.init_process_group = init_process_group
    dist.distributed_c10d.init_process_group = init_process_group
    dist.destroy_process_group = lambda *_: None  # modules are called again after the script's end
    dist.new_group = new_group
    dist.distributed_c10d.new_group = new_group


def _make_group(store: Any, rank: int, world: int, _: Any) -> Any:
    return FileGroup(store, rank, world)


class FileGroup(StandInGroup):
    """Every collective is an exchange of what each rank holds, worked out by each for itself."""

    alone = False
    """The script has ended and its modules are called again: the other ranks count as equal."""

    heard: Callable[[str, list[torch.Tensor], int], None] = staticmethod(lambda *_: None)
    """Told of every collective before it begins: its kind, tensors, and number of ranks."""

    made: ClassVar[list[FileGroup]] = []

    @classmethod
    def listen(cls, heard: Callable[[str, list[torch.Tensor], int], None]) -> None:
        """From now on every collective is told before it begins."""
        cls.heard = staticmethod(heard)

    @classmethod
    def end_exchange(cls) -> None:
        """The other ranks count as equal from now on."""
        cls.alone = True

    def __init__(self, store: Any, rank: int, world: int) -> None:
        super().__init__(rank, world, NAME)
        FileGroup.made.append(self)
        self._store = store
        self._count = 0
        self._letters: dict[tuple[int, int, int], int] = {}

    def name(self) -> str:
        return NAME

    def join(self, works: Sequence[Work]) -> Work:
        return works[-1]  # each was done when it was begun

    def perform(self, collective: Collective) -> Work:
        kind, inputs = collective.kind, collective.inputs
        if kind in (SEND, RECV):
            self._pass_on(collective)
        else:
            if kind in _HEARD and not FileGroup.alone:
                FileGroup.heard(kind, list(inputs), self.size())
            gathered = self._all([item.detach() for item in inputs])
            values = self._results(collective, gathered) if collective.outputs else ()
            for item, value in zip(collective.outputs, values, strict=True):
                _write(item, value)
        return _done(collective.result)

    def _results(self, collective: Collective, gathered: Rows) -> Sequence[torch.Tensor]:
        """What each output holds afterwards; `gathered` has the inputs of every rank."""
        own, outputs = self.rank(), collective.outputs
        several = len(outputs) > 1
        match collective.kind:
            case "all_reduce" | "reduce":
                return [_reduced(row, collective.reduce) for row in zip(*gathered, strict=True)]
            case "broadcast":
                return gathered[collective.root]
            case "scatter":
                return [gathered[collective.root][own]]
            case "gather" | "all_gather" if several or self.size() == 1:
                return [item for column in zip(*gathered, strict=True) for item in column]
            case "all_gather":
                return [torch.cat([row[0].reshape(-1) for row in gathered])]
            case "reduce_scatter":
                return self._scattered(collective, gathered)
            case "all_to_all":
                return self._exchanged(collective, gathered)
        raise NotImplementedError(collective.kind)

    def _scattered(self, collective: Collective, gathered: Rows) -> Sequence[torch.Tensor]:
        own, world, outputs = self.rank(), self.size(), collective.outputs
        if len(collective.inputs) == len(outputs):  # one tensor, cut into as many parts as ranks
            whole = _reduced([row[0] for row in gathered], collective.reduce)
            return [whole.reshape(world, -1)[own]]
        return [
            _reduced([row[place * world + own] for row in gathered], collective.reduce)
            for place in range(len(outputs))
        ]

    def _exchanged(self, collective: Collective, gathered: Rows) -> Sequence[torch.Tensor]:
        own = self.rank()
        if len(collective.inputs) > 1:
            return [row[own] for row in gathered]
        splits = self._all(list(collective.in_splits))
        parts = [row[0].split(sizes)[own] for row, sizes in zip(gathered, splits, strict=True)]
        if [item.shape[0] for item in parts] != list(collective.out_splits):
            FileGroup.heard("split sizes", list(collective.inputs), self.size())
        return [torch.cat(parts)]

    def _pass_on(self, collective: Collective) -> None:
        here, peer, tag = self.rank(), collective.peer, collective.tag
        if collective.kind == SEND:
            self._store.set(
                self._letter(here, peer, tag),
                _packed([item.detach() for item in collective.inputs]),
            )
        elif not FileGroup.alone:
            sent = self._get(self._letter(peer, here, tag), peer)
            for item, value in zip(collective.outputs, sent, strict=True):
                _write(item, value)

    def _all(self, value: Any) -> list[Any]:
        """What every rank gave, in order of rank."""
        self._count += 1
        if self.size() == 1 or FileGroup.alone:
            return [value] * self.size()
        self._store.set(f"{self._count}/{self.rank()}", _packed(value))
        return [self._get(f"{self._count}/{rank}", rank) for rank in range(self.size())]

    def _get(self, key: str, rank: int) -> Any:
        """What another rank has sent, or will send unless its script has ended."""
        for _ in range(int(_SECONDS / _LOOK_SECONDS)):
            ended = self._store.check([f"{_ENDED}/{rank}"])  # before: what it sent last is there
            if self._arrives(key):
                return _load(io.BytesIO(self._store.get(key)), weights_only=True)
            if ended:
                raise dist.DistError(f"rank {rank} has ended without this collective")
        raise dist.DistError(f"rank {rank} does not answer")

    def _arrives(self, key: str) -> bool:
        try:
            self._store.wait([key], timedelta(seconds=_LOOK_SECONDS))
        except RuntimeError:  # how a file store says that time is up
            return False
        return True

    @classmethod
    def tell_end(cls) -> None:
        """The script of this rank is over: nobody waits for it any longer."""
        for group in cls.made:
            group._store.set(f"{_ENDED}/{group.rank()}", b"1")

    def _letter(self, source: int, to: int, tag: int) -> str:
        count = self._letters.get((source, to, tag), 0)
        self._letters[source, to, tag] = count + 1
        return f"p/{source}/{to}/{tag}/{count}"


def _packed(value: Any) -> bytes:
    buffer = io.BytesIO()
    _save(value, buffer)
    return buffer.getvalue()


def _write(target: torch.Tensor, value: torch.Tensor) -> None:
    with torch.no_grad():
        target.detach().copy_(value.reshape(target.shape))


def _done(value: Any) -> Work:
    future: Future[Any] = Future()
    future.set_result(value)
    made: Any = bindings
    work: Work = made._create_work_from_future(future)
    return work


_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "max": lambda rows: rows.amax(0),
    "min": lambda rows: rows.amin(0),
    "product": lambda rows: rows.prod(0),
    "avg": lambda rows: rows.sum(0) / rows.shape[0],
}


def _reduced(parts: Sequence[torch.Tensor], name: str) -> torch.Tensor:
    rows = torch.stack(list(parts))
    reduce = _REDUCTIONS.get(name)
    return reduce(rows) if reduce else rows.sum(0)
