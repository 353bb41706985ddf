"""Matches the communications of all ranks, as MPI verifiers do. Plain logic, no processes.

For every group a queue per rank: when each member has one at the head, they must agree. Sends and
receives are matched by (source, destination, tag) in order. A send waits for its receive.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from torchstone.dryrun.ranks.posts import ANY, NEW_GROUP, RECV, SEND, Post


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Ranks of one group that are not at the same operation, or not with the same shapes."""

    kind: str
    """`operation`, `shape`, `dtype`, `root`, `reduce`, `splits`, `group`, `p2p`."""
    posts: tuple[Post, ...]
    position: int = 0
    """How many operations of the group had agreed before."""


@dataclass(frozen=True, slots=True)
class Match:
    """Communications that belong together and agree."""

    posts: tuple[Post, ...]
    absent: tuple[int, ...] = ()
    """Members of the group that were not run; each behaves as a rank of its class."""


@dataclass
class _Group:
    members: tuple[int, ...]
    queues: dict[int, deque[Post]] = field(default_factory=lambda: defaultdict(deque))
    done: int = 0


class Matcher:
    """Takes posts one by one; gives what has come together."""

    def __init__(self, present: Iterable[int]) -> None:
        self.present = frozenset(present)
        self._groups: dict[str, _Group] = {}
        self._sends: dict[tuple[str, int, int, int], deque[Post]] = defaultdict(deque)
        self._receives: dict[tuple[str, int, int, int], deque[Post]] = defaultdict(deque)
        self._any: dict[tuple[str, int, int], deque[Post]] = defaultdict(deque)
        self.disagreements: list[Disagreement] = []
        self.matches: list[Match] = []

    def post(self, post: Post) -> list[Match]:
        """Take one post; the matches that it completes."""
        if post.is_p2p:
            found = self._point_to_point(post)
        else:
            found = self._collective(post)
        self.matches += found
        return found

    # -- collectives

    def _collective(self, post: Post) -> list[Match]:
        group = self._groups.setdefault(post.group, _Group(self._waited_for(post)))
        group.queues[post.rank].append(post)
        found = []
        while all(group.queues[rank] for rank in group.members):
            heads = tuple(group.queues[rank].popleft() for rank in group.members)
            wrong = _disagreement(heads, group.done)
            if wrong is not None:
                self.disagreements.append(wrong)
                for head in heads:
                    group.queues[head.rank].appendleft(head)
                break
            group.done += 1
            absent = tuple(rank for rank in post.members if rank not in self.present)
            found.append(Match(heads, absent))
        return found

    def _waited_for(self, post: Post) -> tuple[int, ...]:
        members = post.members if post.op != NEW_GROUP else tuple(sorted(self.present))
        return tuple(rank for rank in members if rank in self.present)

    # -- sends and receives

    def _point_to_point(self, post: Post) -> list[Match]:
        if post.peer != ANY and post.peer not in self.present:
            return [Match((post,), (post.peer,))]
        if post.op == SEND:
            return self._send(post)
        return self._receive(post)

    def _send(self, post: Post) -> list[Match]:
        key = (post.group, post.rank, post.peer, post.tag)
        if self._receives[key]:
            return self._pair(post, self._receives[key].popleft())
        anyone = (post.group, post.peer, post.tag)
        if self._any[anyone]:
            return self._pair(post, self._any[anyone].popleft())
        self._sends[key].append(post)
        return []

    def _receive(self, post: Post) -> list[Match]:
        if post.peer == ANY:
            for (group, _, target, tag), queue in self._sends.items():
                if (group, target, tag) == (post.group, post.rank, post.tag) and queue:
                    return self._pair(queue.popleft(), post)
            self._any[post.group, post.rank, post.tag].append(post)
            return []
        key = (post.group, post.peer, post.rank, post.tag)
        if self._sends[key]:
            return self._pair(self._sends[key].popleft(), post)
        self._receives[key].append(post)
        return []

    def _pair(self, send: Post, receive: Post) -> list[Match]:
        if send.dtype != receive.dtype or send.bytes != receive.bytes:
            kind = "dtype" if send.dtype != receive.dtype else "shape"
            self.disagreements.append(Disagreement(kind, (send, receive)))
        return [Match((send, receive))]

    # -- what is left

    def waiting_for(self, post: Post) -> tuple[int, ...]:
        """The ranks without which an unmatched post cannot go on."""
        if post.is_p2p:
            return (post.peer,) if post.peer != ANY else tuple(self.present - {post.rank})
        group = self._groups[post.group]
        return tuple(rank for rank in group.members if not group.queues[rank])

    def heads(self, group: str) -> dict[int, Post]:
        """The first unmatched post of each rank in a group."""
        found = self._groups.get(group)
        return {rank: queue[0] for rank, queue in found.queues.items() if queue} if found else {}

    def left_over(self) -> list[Post]:
        """Posts that nobody answered, in the order of ranks."""
        found = [
            post for group in self._groups.values() for q in group.queues.values() for post in q
        ]
        for queues in (self._sends, self._receives, self._any):
            found += [post for queue in queues.values() for post in queue]
        return sorted(found, key=lambda post: (post.rank, post.number))


def _disagreement(heads: tuple[Post, ...], position: int) -> Disagreement | None:
    first = heads[0]
    for kind in ("op", "dtype", "reduce", "root"):
        if any(getattr(post, kind) != getattr(first, kind) for post in heads[1:]):
            name = {"op": "operation"}.get(kind, kind)
            return Disagreement(name, heads, position)
    if first.op == NEW_GROUP:
        if any(post.members != first.members for post in heads[1:]):
            return Disagreement("group", heads, position)
        return None
    if first.in_splits or first.out_splits:
        return _split_disagreement(heads, position)
    if any(post.shape != first.shape for post in heads[1:]):
        return Disagreement("shape", heads, position)
    return None


def _split_disagreement(heads: tuple[Post, ...], position: int) -> Disagreement | None:
    """What rank i sends to rank j must be what rank j receives from rank i."""
    index = {rank: place for place, rank in enumerate(heads[0].members)}
    for sender in heads:
        for receiver in heads:
            sent = _at(sender.in_splits, index[receiver.rank])
            taken = _at(receiver.out_splits, index[sender.rank])
            if sent is not None and taken is not None and sent != taken:
                return Disagreement("splits", (sender, receiver), position)
    return None


def _at(sizes: tuple[int, ...], index: int) -> int | None:
    return sizes[index] if index < len(sizes) else None


__all__ = ["ANY", "NEW_GROUP", "RECV", "SEND", "Disagreement", "Match", "Matcher"]
