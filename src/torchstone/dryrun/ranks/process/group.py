"""The process group of a played rank: everything that is communicated goes through here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchstone.dryrun.ranks.posts import Post
from torchstone.dryrun.ranks.process.link import Link, is_called_by_hand
from torchstone.dryrun.ranks.process.values import LARGEST, to_bytes, with_splits
from torchstone.dryrun.ranks.process.work import DryWork, all_of, dtype_name
from torchstone.dryrun.session import is_fake
from torchstone.observe.compat.groups import Work, world
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes
from torchstone.observe.ranks import ANY_RANK, RECV, SEND, Collective, StandInGroup

_SEVERAL = ("scatter", "all_to_all", "reduce_scatter", SEND, RECV)
"""Kinds that take a tensor for each rank, or hand over each as it is."""


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


class DryGroup(StandInGroup):
    """Answers every collective by telling the coordinator of it."""

    def __init__(
        self, link: Link, rank: int, size: int, key: str, members: tuple[int, ...]
    ) -> None:
        super().__init__(rank, size, "dry")
        self._link = link
        self.key = key
        self.members = members
        self._sequence = 0

    @property
    def pg_name(self) -> str:
        return str(world().pg_names[self])

    @property
    def group_name(self) -> str:
        return self.pg_name

    @property
    def supports_splitting(self) -> bool:
        return False

    def join(self, works: Sequence[Work]) -> Work:
        return all_of(self._link, list(works))

    def perform(self, collective: Collective) -> DryWork:
        post = self._link.post(self._payload_of(collective), **self._facts_of(collective))
        inputs, outputs = collective.inputs, collective.outputs
        between_two = collective.kind in (SEND, RECV)
        if not between_two:
            self.exchanged(inputs if collective.kind == "broadcast" else outputs, post)
        real = not any(is_fake(tensor) for tensor in (*inputs, *outputs))
        result = collective.result if collective.result is not None else list(outputs)
        work = DryWork(self._link, post, outputs, result, real)
        if not between_two:
            work.use(inputs)
        self._link.works.append(work)
        if not between_two and not post.inside and is_called_by_hand():
            self._link.open_works.append(work)
        return work

    def _payload_of(self, collective: Collective) -> bytes | None:
        payload = _payload(self._link, collective.inputs) if collective.sends else b""
        if payload is not None and collective.in_splits:
            return with_splits(payload, collective.in_splits)
        return payload

    def _facts_of(self, collective: Collective) -> dict[str, Any]:
        """What the coordinator is told, in the names of `Post`."""
        inputs = collective.inputs
        known = (*inputs, *collective.outputs)
        subject = collective.shape_of
        if subject is None and known:
            subject = known[0]
        shape = tuple(int(n) for n in subject.shape) if subject is not None else ()
        if len(inputs) > 1 and collective.kind not in _SEVERAL:
            shape = (sum(tensor.numel() for tensor in inputs),)
        return {
            "op": collective.kind,
            "group": self.key,
            "members": self.members,
            "dtype": dtype_name(subject) if subject is not None else "",
            "shape": shape,
            "root": self._global(collective.root),
            "peer": self._global(collective.peer),
            "reduce": collective.reduce,
            "in_splits": collective.in_splits,
            "out_splits": collective.out_splits,
            "tag": collective.tag,
            "bytes": sum(tensor.numel() * tensor.element_size() for tensor in inputs or known),
        }

    def _global(self, rank: int) -> int:
        return self.members[rank] if rank != ANY_RANK else ANY_RANK

    def exchanged(self, tensors: Sequence[torch.Tensor], post: Post) -> None:
        """Tell of the results of a collective."""
        self._sequence += 1
        for place, tensor in enumerate(tensors):
            self._link.on_exchanged(tensor, post, (self._sequence, place))
