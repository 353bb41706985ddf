"""Ranks that communicate alike, and how many bytes they move."""

from __future__ import annotations

from collections import Counter, defaultdict

from torchstone.dryrun.ranks.coordinator import Played
from torchstone.dryrun.ranks.posts import NEW_GROUP, Post
from torchstone.dryrun.ranks_record import Lane, Mark, Volume

LONGEST = 400
"""Marks kept of one lane: more than a screen can show."""


def lanes_of(played: Played) -> tuple[Lane, ...]:
    """One lane for each class of ranks with equal communication."""
    classes: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, posts in sorted(played.posts.items()):
        classes[tuple(_normal(post) for post in posts)].append(rank)
    lanes = []
    for ranks in classes.values():
        posts = played.posts[ranks[0]]
        record = played.records.get(ranks[0])
        lanes.append(
            Lane(
                tuple(ranks),
                tuple(
                    Mark(post.op, post.group, post.place, post.phase, post.inside)
                    for post in posts[:LONGEST]
                ),
                len(posts),
                record.ending if record else "died",
            )
        )
    return tuple(lanes)


def _normal(post: Post) -> tuple[object, ...]:
    """A post without what tells equal ranks apart: their own number and their peers' numbers."""
    peer = post.peer - post.rank if post.peer >= 0 else post.peer
    return (
        post.op, post.dtype, post.shape, peer, post.root, post.reduce, len(post.members), post.place,
    )  # fmt: skip


def volume_of(played: Played, local_world_size: int) -> tuple[Volume, ...]:
    """Bytes that one rank sends, by operation, link and phase; of the rank that sends most."""
    best: Counter[tuple[str, str, str, str]] = Counter()
    best_calls: Counter[tuple[str, str, str, str]] = Counter()
    for posts in played.posts.values():
        sizes: Counter[tuple[str, str, str, str]] = Counter()
        calls: Counter[tuple[str, str, str, str]] = Counter()
        for post in posts:
            if post.op != NEW_GROUP:
                key = (post.op, _link(post, local_world_size), post.phase, post.inside)
                sizes[key] += sent_bytes(post)
                calls[key] += 1
        if sum(sizes.values()) >= sum(best.values()):
            best, best_calls = sizes, calls
    return tuple(Volume(*key, best_calls[key], size) for key, size in best.most_common())


def _link(post: Post, local: int) -> str:
    ranks = (post.rank, post.peer) if post.is_p2p else post.members
    return "node" if len({rank // local for rank in ranks}) == 1 else "network"


def sent_bytes(post: Post) -> int:
    """Bytes that one member sends, with the algorithms that need the least (rings)."""
    count = max(1, len(post.members))
    share = (count - 1) / count
    if post.op == "all_reduce":
        return int(2 * share * post.bytes)
    if post.op in ("reduce_scatter", "all_to_all"):
        return int(share * post.bytes)
    if post.op == "all_gather":
        return int((count - 1) * post.bytes)
    if post.op == "recv":
        return 0
    return post.bytes
