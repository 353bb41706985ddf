"""The process group that stands in for a real one: torch's many ways to call it, read in one place.

A subclass decides what a collective gives: the dry run asks a coordinator of all played ranks, the
recorded runs of `review` exchange values through a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from torchstone.observe.compat.groups import Work

SEND, RECV = "send", "recv"
ANY_RANK = -1
"""A receive that takes from whoever sends first."""

_ProcessGroup: Any = dist.ProcessGroup
"""torch's stubs give it signatures that its own callers do not keep."""


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """One communication, as this rank begins it. Ranks are counted within the group."""

    kind: str
    inputs: tuple[torch.Tensor, ...] = ()
    """What this rank reads; several for each rank where the kind sends a list."""
    outputs: tuple[torch.Tensor, ...] = ()
    """What is written to on this rank: none where it only gives."""
    result: Any = None
    """What the caller is given when it has waited."""
    shape_of: torch.Tensor | None = None
    """The tensor whose shape and number format all ranks have to agree on."""
    root: int = ANY_RANK
    reduce: str = ""
    sends: bool = True
    in_splits: tuple[int, ...] = ()
    out_splits: tuple[int, ...] = ()
    peer: int = ANY_RANK
    tag: int = 0


class StandInGroup(_ProcessGroup):  # type: ignore[misc]
    """A process group without a network: each call becomes a `Collective`."""

    def __init__(self, rank: int, size: int, backend: str) -> None:
        super().__init__(rank, size)
        self._rank_here, self._size, self._backend = rank, size, backend

    def perform(self, collective: Collective) -> Work:
        """Begin one communication."""
        raise NotImplementedError

    def join(self, works: Sequence[Work]) -> Work:
        """Several communications that are waited for as one."""
        raise NotImplementedError

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank_here

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return self._backend

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        own = _as_tuple(tensors)
        op = getattr(opts, "reduceOp", opts)
        return self.perform(Collective("all_reduce", own, own, list(own), reduce=_name_of(op)))

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: Any, opts: Any = None, *_: Any) -> Work:
        own, root = _as_tuple(tensors), _root_of(opts)
        gives = root == self._rank_here
        return self.perform(
            Collective("broadcast", own, () if gives else own, list(own), root=root, sends=gives)
        )

    def reduce(self, tensors: Any, opts: Any = None, *_: Any) -> Work:
        own, root = _as_tuple(tensors), _root_of(opts)
        op = getattr(opts, "reduceOp", None)
        outputs = own if root == self._rank_here else ()
        return self.perform(
            Collective("reduce", own, outputs, list(own), root=root, reduce=_name_of(op))
        )

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        del opts
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        return self.perform(Collective("all_gather", tuple(inputs), _flatten(outputs), outputs))

    def all_gather_single(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any = None
    ) -> Work:
        del opts
        return self.perform(Collective("all_gather", (given,), (output,), [output]))

    _allgather_base = all_gather_single

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        pairs = zip(outputs, inputs, strict=True)
        return self.join([self.allgather([out], [given], opts) for out, given in pairs])

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        pairs = zip(outputs, inputs, strict=True)
        return self.join([self.all_gather_single(out, given, opts) for out, given in pairs])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: Any, inputs: Any, opts: Any = None, *_: Any) -> Work:
        own, root = _as_tuple(inputs), _root_of(opts)
        return self.perform(Collective("gather", own, _flatten(outputs), outputs, root=root))

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None, *_: Any) -> Work:
        taken, given = _as_tuple(outputs), _flatten(inputs)
        return self.perform(
            Collective(
                "scatter",
                given,
                taken,
                list(taken),
                taken[0],
                root=_root_of(opts),
                sends=bool(given),
            )
        )

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, *_: Any) -> Work:
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        op = getattr(opts, "reduceOp", None)
        return self.perform(
            Collective(
                "reduce_scatter", _flatten(inputs), tuple(outputs), outputs, outputs[0],
                reduce=_name_of(op),
            )
        )  # fmt: skip

    def reduce_scatter_single(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any = None
    ) -> Work:
        op = getattr(opts, "reduceOp", None)
        return self.perform(
            Collective("reduce_scatter", (given,), (output,), [output], output, reduce=_name_of(op))
        )

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        pairs = zip(outputs, inputs, strict=True)
        return self.join([self.reduce_scatter_single(out, given, opts) for out, given in pairs])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        out_splits: Any = None,
        in_splits: Any = None,
        opts: Any = None,
    ) -> Work:
        del opts
        sends = _splits_of(given, in_splits, self._size)
        takes = _splits_of(output, out_splits, self._size)
        return self.perform(
            Collective(
                "all_to_all", (given,), (output,), [output], in_splits=sends, out_splits=takes
            )
        )

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        del opts
        sends, takes = ([int(item.numel()) for item in row] for row in (inputs, outputs))
        return self.perform(
            Collective(
                "all_to_all", tuple(inputs), tuple(outputs), outputs,
                in_splits=tuple(sends), out_splits=tuple(takes),
            )
        )  # fmt: skip

    def barrier(self, *_: Any, **__: Any) -> Work:
        return self.perform(Collective("barrier"))

    def monitored_barrier(self, *_: Any, **__: Any) -> None:
        self.barrier().wait()

    def send(self, tensors: Any, peer: int, tag: int = 0) -> Work:
        return self.perform(Collective(SEND, tuple(tensors), (), tensors, peer=peer, tag=tag))

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> Work:
        own = tuple(tensors)
        return self.perform(Collective(RECV, (), own, tensors, sends=False, peer=peer, tag=tag))

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        return self.recv(tensors, ANY_RANK, tag)

    def _start_coalescing(self, device: Any) -> None:
        pass

    def _end_coalescing(self, device: Any) -> None:
        pass

    def shutdown(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _wait_for_pending_works(self) -> None:
        pass

    def _has_hooks(self) -> bool:
        return False


def check_splits(tensor: torch.Tensor, splits: Sequence[int], count: int) -> None:
    """Refuse what torch's own process groups refuse, before anything is sent."""
    if len(splits) != count:
        raise RuntimeError(
            f"Number of tensor splits not equal to group size: {len(splits)} for {count} ranks"
        )
    if sum(map(int, splits)) != tensor.shape[0]:
        raise RuntimeError(
            f"Split sizes doesn't match total dim 0 size: {list(map(int, splits))} for {tuple(tensor.shape)}"
        )


def _splits_of(tensor: torch.Tensor, given: Any, count: int) -> tuple[int, ...]:
    splits = tuple(map(int, given or ())) or (tensor.shape[0] // count,) * count
    check_splits(tensor, splits, count)
    return splits


def _as_tuple(tensors: Any) -> tuple[torch.Tensor, ...]:
    return (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)


def _flatten(rows: Any) -> tuple[torch.Tensor, ...]:
    return tuple(tensor for row in rows for tensor in _as_tuple(row))


def _root_of(options: Any) -> int:
    return options if isinstance(options, int) else int(getattr(options, "rootRank", 0))


def _name_of(op: Any) -> str:
    """`sum`, `avg`, `max` …; pre-multiplied sums have no name of their own."""
    if op is None:
        return "sum"
    text = str(getattr(op, "op", op)).rsplit(".", 1)[-1].lower()
    return text.strip("<>: 0123456789").replace("redoptype", "sum") or "sum"
