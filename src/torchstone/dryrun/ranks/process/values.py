"""Small real values are really reduced, so that control flow that hangs on them is right."""

from __future__ import annotations

import torch

from torchstone.dryrun.ranks.matching import Match
from torchstone.dryrun.ranks.posts import Post

LARGEST = 1 << 20
"""Bytes of one tensor that are sent along: flags, counts and objects are far smaller."""


def to_bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def from_bytes(data: bytes, dtype: str) -> torch.Tensor:
    if not data:
        return torch.empty(0, dtype=getattr(torch, dtype))
    return torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype))


def results(match: Match, values: dict[int, bytes]) -> dict[int, bytes | None]:
    """What each rank gets; None where a value is unknown because a fake tensor took part."""
    posts = {post.rank: post for post in match.posts}
    unknown: dict[int, bytes | None] = dict.fromkeys(posts)
    first = match.posts[0]
    if first.is_p2p:
        return _point_to_point(match, values, unknown)
    if first.op in ("barrier", "new_group"):
        return dict.fromkeys(posts, b"")
    filled = _with_absent(match, values)
    wanted = {first.root} if first.op in ("broadcast", "scatter") else set(first.members)
    if not wanted <= set(filled):
        return unknown
    return {rank: _result(first, post, filled) for rank, post in posts.items()}


def _with_absent(match: Match, values: dict[int, bytes]) -> dict[int, bytes]:
    """A rank that was not run contributes what the nearest rank before it does."""
    filled = dict(values)
    present = sorted(values)
    for rank in match.absent:
        before = [other for other in present if other < rank] or present[:1]
        if before:
            filled[rank] = values[before[-1]]
    return filled


def _point_to_point(
    match: Match, values: dict[int, bytes], unknown: dict[int, bytes | None]
) -> dict[int, bytes | None]:
    if len(match.posts) < 2:
        return unknown
    send, receive = match.posts
    return {send.rank: b"", receive.rank: values.get(send.rank)}


def _result(first: Post, post: Post, values: dict[int, bytes]) -> bytes:
    members = first.members
    if first.op in ("all_reduce", "reduce"):
        return to_bytes(_reduced([values[rank] for rank in members], first))
    if first.op == "broadcast":
        return values[first.root]
    if first.op in ("all_gather", "gather"):
        return b"".join(values[rank] for rank in members)
    place = members.index(post.rank)
    if first.op == "scatter":
        size = len(values[first.root]) // len(members)
        return values[first.root][place * size : (place + 1) * size]
    if first.op == "reduce_scatter":
        whole = to_bytes(_reduced([values[rank] for rank in members], first))
        size = len(whole) // len(members)
        return whole[place * size : (place + 1) * size]
    return _exchanged(first, post, values, place)


def _exchanged(first: Post, post: Post, values: dict[int, bytes], place: int) -> bytes:
    """all_to_all: the piece that each rank has for this one."""
    pieces = []
    for sender, rank in enumerate(first.members):
        data = values[rank]
        if not post.out_splits:
            size = len(data) // len(first.members)
            pieces.append(data[place * size : (place + 1) * size])
            continue
        # the sender's splits before this rank's piece are known to it alone: they are sent along
        header = int.from_bytes(data[:4], "big")
        splits = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(header)]
        body = data[4 + 4 * header :]
        row = len(body) // max(1, sum(splits)) if sum(splits) else 0
        start = sum(splits[:place]) * row
        pieces.append(body[start : start + splits[place] * row])
        del sender
    return b"".join(pieces)


def with_splits(data: bytes, splits: tuple[int, ...]) -> bytes:
    """The bytes of an all_to_all input, preceded by how they are split."""
    head = len(splits).to_bytes(4, "big") + b"".join(size.to_bytes(4, "big") for size in splits)
    return head + data


def _reduced(parts: list[bytes], post: Post) -> torch.Tensor:
    tensors = [from_bytes(part, post.dtype) for part in parts]
    stacked = torch.stack(tensors)
    kind = post.reduce
    if kind == "max":
        return stacked.amax(0)
    if kind == "min":
        return stacked.amin(0)
    if kind == "product":
        return stacked.prod(0).to(stacked.dtype)
    if kind in ("band", "bor", "bxor"):
        return _bitwise(tensors, kind)
    total = stacked.to(torch.float64).sum(0) if stacked.is_floating_point() else stacked.sum(0)
    if kind == "avg":
        total = total / len(parts)
    return total.to(stacked.dtype)


def _bitwise(tensors: list[torch.Tensor], kind: str) -> torch.Tensor:
    total = tensors[0]
    for other in tensors[1:]:
        total = (
            total & other if kind == "band" else total | other if kind == "bor" else total ^ other
        )
    return total
