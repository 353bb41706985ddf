"""The process group of a played rank: everything that is communicated goes through here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from torchstone.dryrun.ranks.posts import ANY, RECV, SEND, Post
from torchstone.dryrun.ranks.process.link import Link, is_called_by_hand
from torchstone.dryrun.ranks.process.values import LARGEST, to_bytes, with_splits
from torchstone.dryrun.ranks.process.work import DryWork, all_of, dtype_name
from torchstone.dryrun.script.session import is_fake
from torchstone.observe.compat.groups import Work, world
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes

_ProcessGroup: Any = (
    dist.ProcessGroup
)  # torch's stubs give it signatures that its callers do not keep


def _payload(link: Link, tensors: Sequence[torch.Tensor]) -> bytes | None:
    """The bytes of small real tensors; None when a value is unknown or too large to send."""
    total = 0
    for tensor in tensors:
        if is_fake(tensor) or not _plain(tensor) or link.is_stale(tensor):
            return None
        total += tensor.numel() * tensor.element_size()
    if total > LARGEST:
        return None
    with disable_modes(), DisableTorchFunction():
        return b"".join(to_bytes(tensor) for tensor in tensors)


def _plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def _reduce_name(op: Any) -> str:
    text = str(getattr(op, "op", op)).rsplit(".", 1)[-1].lower()
    return text.strip("<>: 0123456789").replace("redoptype", "sum") or "sum"


def check_splits(tensor: torch.Tensor, splits: Sequence[int], count: int) -> None:
    """As torch's own process groups refuse them, before anything is sent."""
    if len(splits) != count:
        raise RuntimeError(
            f"Number of tensor splits not equal to group size: {len(splits)} for {count} ranks"
        )
    if sum(map(int, splits)) != tensor.shape[0]:
        raise RuntimeError(
            f"Split sizes doesn't match total dim 0 size: {list(map(int, splits))} for {tuple(tensor.shape)}"
        )


class DryGroup(_ProcessGroup):  # type: ignore[misc]
    """Answers every collective by telling the coordinator of it."""

    def __init__(
        self, link: Link, rank: int, size: int, key: str, members: tuple[int, ...]
    ) -> None:
        super().__init__(rank, size)
        self._link = link
        self._own_rank = rank
        self._own_size = size
        self.key = key
        self.members = members
        self._sequence = 0

    def size(self) -> int:
        return self._own_size

    def rank(self) -> int:
        return self._own_rank

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return "dry"

    @property
    def pg_name(self) -> str:
        return str(world().pg_names[self])

    @property
    def group_name(self) -> str:
        return self.pg_name

    @property
    def supports_splitting(self) -> bool:
        return False

    # -- the one way out

    def _collective(
        self,
        op: str,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        result: Any = None,
        *,
        shape_of: torch.Tensor | None = None,
        root: int = -1,
        reduce: str = "",
        sends: bool = True,
        **facts: Any,
    ) -> DryWork:
        known = [*inputs, *outputs]
        subject = shape_of if shape_of is not None else known[0] if known else None
        payload = _payload(self._link, inputs) if sends else b""
        if payload is not None and facts.get("in_splits"):
            payload = with_splits(payload, facts["in_splits"])
        sizes = sum(tensor.numel() * tensor.element_size() for tensor in inputs)
        shape = tuple(int(n) for n in subject.shape) if subject is not None else ()
        if len(inputs) > 1 and op not in ("scatter", "all_to_all", "reduce_scatter"):
            shape = (sum(tensor.numel() for tensor in inputs),)
        post = self._link.post(
            payload,
            op=op,
            group=self.key,
            members=self.members,
            dtype=dtype_name(subject) if subject is not None else "",
            shape=shape,
            root=self.members[root] if root >= 0 else -1,
            reduce=reduce,
            bytes=sizes,
            **facts,
        )
        real = not any(is_fake(tensor) for tensor in (*inputs, *outputs))
        self.exchanged(inputs if op == "broadcast" else outputs, post)
        work = DryWork(
            self._link, post, outputs, result if result is not None else list(outputs), real
        )
        work.use(inputs)
        self._link.works.append(work)
        if not post.inside and is_called_by_hand():
            self._link.open_works.append(work)
        return work

    def exchanged(self, tensors: Sequence[torch.Tensor], post: Post) -> None:
        """Tell of the results of a collective."""
        self._sequence += 1
        for place, tensor in enumerate(tensors):
            self._link.on_exchanged(tensor, post, (self._sequence, place))

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        reduce = _reduce_name(getattr(opts, "reduceOp", opts)) if opts is not None else "sum"
        return self._collective("all_reduce", tensors, tensors, reduce=reduce)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: Any, opts: Any = None, *rest: Any) -> Work:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        mine = root == self._own_rank
        return self._collective("broadcast", tensors, [] if mine else tensors, tensors,
                                root=root, sends=mine)  # fmt: skip

    def reduce(self, tensors: Any, opts: Any = None, *rest: Any) -> Work:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        reduce = _reduce_name(getattr(opts, "reduceOp", "sum"))
        outputs = tensors if root == self._own_rank else []
        return self._collective("reduce", tensors, outputs, tensors, root=root, reduce=reduce)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        flat = [tensor for one in outputs for tensor in one]
        return self._collective("all_gather", inputs, flat, outputs)

    def all_gather_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        return self._collective("all_gather", [input], [output], [output])

    _allgather_base = all_gather_single

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        works = [
            self.allgather([out], [inp], opts) for out, inp in zip(outputs, inputs, strict=True)
        ]
        return all_of(self._link, works)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        works = [self.all_gather_single(o, i, opts) for o, i in zip(outputs, inputs, strict=True)]
        return all_of(self._link, works)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: Any, inputs: Any, opts: Any = None, *rest: Any) -> Work:
        inputs = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        nested = [out if isinstance(out, (list, tuple)) else [out] for out in outputs]
        flat = [tensor for one in nested for tensor in one]
        return self._collective("gather", inputs, flat, outputs, root=root)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None, *rest: Any) -> Work:
        outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        nested = [inp if isinstance(inp, (list, tuple)) else [inp] for inp in inputs]
        flat = [tensor for one in nested for tensor in one]
        return self._collective("scatter", flat, outputs, outputs, shape_of=outputs[0], root=root,
                                sends=bool(flat))  # fmt: skip

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, *rest: Any) -> Work:
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        flat = [tensor for one in inputs for tensor in one]
        reduce = _reduce_name(getattr(opts, "reduceOp", "sum"))
        return self._collective("reduce_scatter", flat, outputs, outputs, shape_of=outputs[0],
                                reduce=reduce)  # fmt: skip

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        reduce = _reduce_name(getattr(opts, "reduceOp", "sum"))
        return self._collective("reduce_scatter", [input], [output], [output], shape_of=output,
                                reduce=reduce)  # fmt: skip

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        works = [
            self.reduce_scatter_single(o, i, opts) for o, i in zip(outputs, inputs, strict=True)
        ]
        return all_of(self._link, works)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(
        self, output: torch.Tensor, input: torch.Tensor, out_splits: Any = None,
        in_splits: Any = None, opts: Any = None,
    ) -> Work:  # fmt: skip
        count = self._own_size
        sends = tuple(in_splits or ()) or (input.shape[0] // count,) * count
        takes = tuple(out_splits or ()) or (output.shape[0] // count,) * count
        check_splits(input, sends, count)
        check_splits(output, takes, count)
        return self._collective(
            "all_to_all", [input], [output], [output],
            in_splits=tuple(map(int, sends)), out_splits=tuple(map(int, takes)),
        )  # fmt: skip

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        sends = tuple(tensor.numel() for tensor in inputs)
        takes = tuple(tensor.numel() for tensor in outputs)
        return self._collective("all_to_all", list(inputs), list(outputs), outputs,
                                in_splits=sends, out_splits=takes)  # fmt: skip

    def barrier(self, opts: Any = None, *rest: Any) -> Work:
        return self._collective("barrier", [], [])

    def monitored_barrier(self, *args: Any, **kwargs: Any) -> None:
        self.barrier().wait()

    # -- point to point

    def send(self, tensors: Any, peer: int, tag: int = 0) -> Work:
        return self._point(SEND, tensors, self.members[peer], tag)

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> Work:
        return self._point(RECV, tensors, self.members[peer], tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        return self._point(RECV, tensors, ANY, tag)

    def _point(self, op: str, tensors: Any, peer: int, tag: int) -> Work:
        tensors = list(tensors)
        post = self._link.post(
            _payload(self._link, tensors) if op == SEND else b"",
            op=op, group=self.key, members=self.members, dtype=dtype_name(tensors[0]),
            shape=tuple(int(n) for n in tensors[0].shape), peer=peer, tag=tag,
            bytes=sum(tensor.numel() * tensor.element_size() for tensor in tensors),
        )  # fmt: skip
        outputs = tensors if op == RECV else []
        real = not any(is_fake(tensor) for tensor in tensors)
        work = DryWork(self._link, post, outputs, tensors, real)
        self._link.works.append(work)
        return work

    # -- what torch asks besides

    def _start_coalescing(self, device: Any) -> None:
        self._coalesced: list[DryWork] = []

    def _end_coalescing(self, device: Any) -> Work | None:
        return None

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
