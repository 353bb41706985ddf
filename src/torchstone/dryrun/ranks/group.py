"""The process group of a played rank: everything that is communicated goes through here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work
from torch.futures import Future
from torch.utils._python_dispatch import _disable_current_modes

from torchstone.dryrun.ranks.posts import ANY, RECV, SEND, Post
from torchstone.dryrun.ranks.values import LARGEST, from_bytes, to_bytes, with_splits
from torchstone.dryrun.ranks.wire import Wire
from torchstone.dryrun.record import Place
from torchstone.dryrun.script.places import OWN, kind_of, place_of
from torchstone.dryrun.script.session import Session, is_fake

_STACK = 8
"""Lines of the user's own code that go with a post: enough to see which call led there."""
_INSIDE = (
    ("torch/nn/parallel/distributed", "DDP"),
    ("torch/distributed/fsdp", "FSDP"),
    ("torch/distributed/tensor", "DTensor"),
    ("torch/distributed/pipelining", "pipeline"),
    ("accelerate/", "accelerate"),
)


# torch's stubs give these classes signatures that their own callers do not keep
_Work: Any = Work
_ProcessGroup: Any = dist.ProcessGroup


def _ignore(tensor: torch.Tensor, post: Post, sequence: tuple[int, int]) -> None:
    pass


class Link:
    """This rank's line to the coordinator, and what it has posted."""

    def __init__(self, session: Session, wire: Wire, rank: int) -> None:
        self.session = session
        self.rank = rank
        self.works: list[DryWork] = []
        self.on_exchanged: Callable[[torch.Tensor, Post, tuple[int, int]], None] = _ignore
        """Is told of tensors that a collective gives a new value, with the place of the collective in
        the sequence of its group and of the tensor in its results."""
        self.mark_stale: Callable[[torch.Tensor], None] = lambda tensor: None
        self.mark_known: Callable[[torch.Tensor], None] = lambda tensor: None
        self.is_stale: Callable[[torch.Tensor], bool] = lambda tensor: False
        self._wire: Wire | None = wire
        self._count = 0

    def post(self, payload: bytes | None = None, **facts: Any) -> Post:
        stack, inside = _own_stack()
        phase = (
            "backward"
            if torch._C._current_graph_task_id() != -1
            else ("forward" if self.session.modules else "")
        )
        post = Post(
            rank=self.rank, number=self._count, stack=stack, inside=inside, phase=phase,
            step=self.session.counts.optimizer_steps, **facts,
        )  # fmt: skip
        self._count += 1
        if self._wire is not None:
            self._wire.put({"post": asdict(post), "known": payload is not None}, payload or b"")
        return post

    def detach(self) -> None:
        """A copy of this rank that tries a fix goes on alone: nobody hears it, and what others would
        send is unknown."""
        self._wire = None

    def wait(self, number: int) -> bytes | None:
        """Block until the post has been matched; its value, or None when that is unknown."""
        if self._wire is None:
            return None
        self._wire.put({"wait": number})
        answer = self._wire.take()
        if answer is None or not answer[0].get("ok"):
            self.session.end("blocked", "")
            raise AssertionError("unreachable")
        return answer[1] if answer[0].get("known") else None

    def finish(self, record: str) -> None:
        """Tell that the program has ended on this rank."""
        lost = [work.post.number for work in self.works if not work.awaited]
        assert self._wire is not None, "a trial has a sink of its own"
        self._wire.put({"done": True, "unawaited": lost}, record.encode("utf-8", "surrogatepass"))


def _own_stack() -> tuple[tuple[Place, ...], str]:
    frame: FrameType | None = sys._getframe(2)
    found: list[Place] = []
    inside = ""
    while frame is not None and len(found) < _STACK:
        code = frame.f_code
        if kind_of(code) == OWN:
            found.append(place_of((code, frame.f_lineno)))
        elif not found and not inside:
            inside = next((name for part, name in _INSIDE if part in code.co_filename), "")
        frame = frame.f_back
    return tuple(found), inside


class DryWork(_Work):  # type: ignore[misc]
    """A communication that was started. Its outputs are filled when it is waited for."""

    def __init__(
        self, link: Link, post: Post, outputs: Sequence[torch.Tensor], result: Any, real: bool
    ) -> None:
        super().__init__()
        self.link = link
        self.post = post
        self.awaited = False
        self._outputs = list(outputs)
        self._result = result
        self._real = real

    def wait(self, timeout: Any = None) -> bool:
        if not self.awaited:
            self.awaited = True
            fill(self.link, self._outputs, self.link.wait(self.post.number))
        return True

    def get_future(self) -> Any:
        """C++ asks for this; with fake tensors there is no value to wait for."""
        if self._real:
            self.wait()
        self.awaited = True
        future: Future[Any] = Future()
        future.set_result(self._result)
        return future

    def is_completed(self) -> bool:
        return self.awaited

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> Any:
        return self._result

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return max(self.post.peer, 0)

    _source_rank = source_rank


def fill(link: Link, outputs: list[torch.Tensor], value: bytes | None) -> None:
    """Put the bytes of a result into the outputs; without bytes they are unknown from now on."""
    if value is None:
        for tensor in outputs:
            if not is_fake(tensor):
                link.mark_stale(tensor)
        return
    at = 0
    for tensor in outputs:
        size = tensor.numel() * tensor.element_size()
        piece, at = value[at : at + size], at + size
        if is_fake(tensor) or len(piece) != size or not size:
            continue
        with torch.no_grad(), _disable_current_modes(), torch._C.DisableTorchFunction():
            tensor.copy_(from_bytes(piece, _dtype(tensor)).reshape(tensor.shape))
        link.mark_known(tensor)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _payload(link: Link, tensors: Sequence[torch.Tensor]) -> bytes | None:
    """The bytes of small real tensors; None when a value is unknown or too large to send."""
    total = 0
    for tensor in tensors:
        if is_fake(tensor) or not _plain(tensor) or link.is_stale(tensor):
            return None
        total += tensor.numel() * tensor.element_size()
    if total > LARGEST:
        return None
    with _disable_current_modes(), torch._C.DisableTorchFunction():
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
        return str(dist.distributed_c10d._world.pg_names[self])

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
            dtype=_dtype(subject) if subject is not None else "",
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
        self._link.works.append(work)
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
        return _all_of(self._link, works)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        works = [self.all_gather_single(o, i, opts) for o, i in zip(outputs, inputs, strict=True)]
        return _all_of(self._link, works)

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
        return _all_of(self._link, works)

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
            op=op, group=self.key, members=self.members, dtype=_dtype(tensors[0]),
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


class _AllWork(DryWork):
    """Several communications that are waited for as one."""

    def __init__(self, link: Link, works: list[Work]) -> None:
        last = works[-1]
        assert isinstance(last, DryWork)
        super().__init__(link, last.post, [], last._result, last._real)
        self._works = works

    def wait(self, timeout: Any = None) -> bool:
        self.awaited = True
        for work in self._works:
            work.wait()
        return True


def _all_of(link: Link, works: list[Work]) -> Work:
    return _AllWork(link, works)
