"""A rank's line to the coordinator: what it posts, and the lines of the program that led there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from types import FrameType
from typing import Any, Protocol

import torch

from torchstone.core.place import Place
from torchstone.dryrun.ranks.posts import Post
from torchstone.dryrun.ranks.wire import Wire
from torchstone.dryrun.session import Session
from torchstone.observe.compat.autograd import graph_task
from torchstone.observe.where import OWN, PROGRAM


class Waiting(Protocol):
    """Something that was posted, and whether the program has waited for it."""

    post: Post
    awaited: bool


_STACK = 8
"""Lines of the user's own code that go with a post: enough to see which call led there."""
_INSIDE = (
    ("torch/nn/parallel/distributed", "DDP"),
    ("torch/distributed/fsdp", "FSDP"),
    ("torch/distributed/tensor", "DTensor"),
    ("torch/distributed/pipelining", "pipeline"),
    ("accelerate/", "accelerate"),
)


def _ignore(tensor: torch.Tensor, post: Post, sequence: tuple[int, int]) -> None:
    pass


class Link:
    """This rank's line to the coordinator, and what it has posted."""

    def __init__(self, session: Session, wire: Wire, rank: int) -> None:
        self.session = session
        self.rank = rank
        self.works: list[Waiting] = []
        self.open_works: list[Waiting] = []
        """Those that the user's own code has started and not waited for yet."""
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
        phase = "backward" if graph_task() != -1 else ("forward" if self.session.modules else "")
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
        if PROGRAM.kind_of(code.co_filename) == OWN:
            found.append(PROGRAM.line_of(frame))
        elif not found and not inside:
            inside = next((name for part, name in _INSIDE if part in code.co_filename), "")
        frame = frame.f_back
    return tuple(found), inside


_WAITS_BY_ITSELF = "_functional_collectives"
"""Results of these are waited for when they are first used."""


def is_called_by_hand() -> bool:
    """Whether the user's code calls a function of torch.distributed whose work it has to wait for."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and PROGRAM.kind_of(frame.f_code.co_filename) != OWN:
        if _WAITS_BY_ITSELF in frame.f_code.co_filename:
            return False
        frame = frame.f_back
    return True
