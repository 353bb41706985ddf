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

from torchstone.observe.compat.groups import bindings

NAME = "probes"
_SECONDS = 30.0
"""A rank that waits longer for one that runs has lost it; they compute alike, so a busy machine delays all."""
_LOOK_SECONDS = 0.5
_ENDED = "ended"
_save, _load = torch.save, torch.load


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


class FileGroup(dist.ProcessGroup):
    """Every collective is an exchange of what each rank holds, worked out by each for itself."""

    alone = False
    """The script has ended and its modules are called again: the other ranks count as equal."""

    heard: Callable[[str, list[torch.Tensor], int], None] = staticmethod(lambda *_: None)
    """Told of every collective before it begins: its kind, tensors, and number of ranks."""

    made: ClassVar[list[FileGroup]] = []

    def __init__(self, store: Any, rank: int, world: int) -> None:
        super().__init__(rank, world)  # type: ignore[call-arg]
        FileGroup.made.append(self)
        self._store, self._rank_here, self._world = store, rank, world
        self._count = 0
        self._letters: dict[tuple[int, int, int], int] = {}

    def size(self) -> int:
        return self._world

    def rank(self) -> int:
        return self._rank_here

    def getBackendName(self) -> str:  # noqa: N802
        return NAME

    def name(self) -> str:
        return NAME

    def _tell(self, kind: str, tensors: list[torch.Tensor]) -> None:
        if not FileGroup.alone:
            FileGroup.heard(kind, tensors, self._world)

    def _all(self, value: Any) -> list[Any]:
        """What every rank gave, in order of rank."""
        self._count += 1
        if self._world == 1 or FileGroup.alone:
            return [value] * self._world
        self._store.set(f"{self._count}/{self._rank_here}", _packed(value))
        return [self._get(f"{self._count}/{rank}", rank) for rank in range(self._world)]

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
            group._store.set(f"{_ENDED}/{group._rank_here}", b"1")

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:  # type: ignore[override]
        self._tell("all_reduce", tensors if isinstance(tensors, list) else [tensors])
        op = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        own = tensors if isinstance(tensors, list) else [tensors]
        gathered = self._all([item.detach() for item in own])
        for place, item in enumerate(own):
            _write(item, _reduced([row[place] for row in gathered], op))
        return _done(tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Any, opts: Any = None) -> Any:  # type: ignore[override]
        self._tell("reduce", tensors)
        gathered = self._all([item.detach() for item in tensors])
        if self._rank_here == opts.rootRank:
            for place, item in enumerate(tensors):
                _write(item, _reduced([row[place] for row in gathered], opts.reduceOp))
        return _done(tensors)

    def broadcast(self, tensors: Any, opts: Any = None) -> Any:  # type: ignore[override]
        self._tell("broadcast", tensors)
        gathered = self._all([item.detach() for item in tensors])
        for item, sent in zip(tensors, gathered[opts.rootRank], strict=True):
            _write(item, sent)
        return _done(tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:  # noqa: ARG002
        self._tell("all_gather", inputs)
        gathered = self._all([item.detach() for item in inputs])
        for place, row in enumerate(outputs):
            for rank, item in enumerate(row):
                _write(item, gathered[rank][place])
        return _done(outputs)

    def all_gather_single(self, output: Any, given: Any, opts: Any = None) -> Any:  # noqa: ARG002
        self._tell("all_gather", [given])
        gathered = self._all(given.detach())
        _write(output, torch.cat([item.reshape(-1) for item in gathered]).reshape(output.shape))
        return _done(output)

    _allgather_base = all_gather_single  # type: ignore[assignment]

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:  # type: ignore[override]
        self._tell("reduce_scatter", inputs[0])
        gathered = self._all([[item.detach() for item in row] for row in inputs])
        for place, item in enumerate(outputs):
            parts = [row[place][self._rank_here] for row in gathered]
            _write(item, _reduced(parts, opts.reduceOp))
        return _done(outputs)

    def reduce_scatter_single(self, output: Any, given: Any, opts: Any = None) -> Any:
        self._tell("reduce_scatter", [given])
        whole = _reduced(self._all(given.detach()), opts.reduceOp)
        _write(output, whole.reshape(self._world, -1)[self._rank_here].reshape(output.shape))
        return _done(output)

    _reduce_scatter_base = reduce_scatter_single  # type: ignore[assignment]

    def all_to_all_single(
        self, output: Any, given: Any, output_sizes: Any = None, input_sizes: Any = None, opts: Any = None,  # noqa: ARG002
    ) -> Any:  # fmt: skip
        self._tell("all_to_all", [given])
        sizes = list(input_sizes) if input_sizes else [given.shape[0] // self._world] * self._world
        gathered = self._all(list(given.detach().split(sizes)))
        parts = [row[self._rank_here] for row in gathered]
        if output_sizes and [item.shape[0] for item in parts] != list(output_sizes):
            self._tell("split sizes", [given])
        _write(output, torch.cat(parts))
        return _done(output)

    alltoall_base = all_to_all_single  # type: ignore[assignment]

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:  # noqa: ARG002
        self._tell("all_to_all", inputs)
        gathered = self._all([item.detach() for item in inputs])
        for rank, item in enumerate(outputs):
            _write(item, gathered[rank][self._rank_here])
        return _done(outputs)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:  # type: ignore[override]
        gathered = self._all([item.detach() for item in inputs])
        if self._rank_here == opts.rootRank:
            for rank, item in enumerate(outputs[0]):
                _write(item, gathered[rank][0])
        return _done(outputs)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:  # type: ignore[override]
        gathered = self._all([[item.detach() for item in row] for row in inputs])
        _write(outputs[0], gathered[opts.rootRank][0][self._rank_here])
        return _done(outputs)

    def barrier(self, *_: Any, **__: Any) -> Any:
        self._all(0)
        return _done(None)

    def send(self, tensors: Any, to: int, tag: int = 0) -> Any:
        key = self._letter(self._rank_here, to, tag)
        self._store.set(key, _packed([item.detach() for item in tensors]))
        return _done(tensors)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Any:
        if FileGroup.alone:
            return _done(tensors)
        for item, sent in zip(
            tensors, self._get(self._letter(source, self._rank_here, tag), source), strict=True
        ):
            _write(item, sent)
        return _done(tensors)

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


def _done(value: Any) -> Any:
    future: Future[Any] = Future()
    future.set_result(value)
    made: Any = bindings
    return made._create_work_from_future(future)


_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "MAX": lambda rows: rows.amax(0),
    "MIN": lambda rows: rows.amin(0),
    "PRODUCT": lambda rows: rows.prod(0),
    "AVG": lambda rows: rows.sum(0) / rows.shape[0],
}


def _reduced(parts: Sequence[torch.Tensor], op: Any) -> torch.Tensor:
    rows = torch.stack(list(parts))
    name = str(op).rpartition(".")[2].rpartition(":")[2].strip(" >")
    for key, reduce in _REDUCTIONS.items():
        if key in name or op == getattr(dist.ReduceOp, key, None):
            return reduce(rows)
    return rows.sum(0)
