"""Small values are really reduced."""

from __future__ import annotations

import torch

from torchstone.dryrun.ranks.matching import Match
from torchstone.dryrun.ranks.posts import Post
from torchstone.dryrun.ranks.process.values import from_bytes, results, to_bytes, with_splits


def match(op: str, **facts: object) -> Match:
    posts = [Post(rank, 0, op, "world", (0, 1), "float32", (2,), **facts) for rank in (0, 1)]  # type: ignore[arg-type]
    return Match(tuple(posts))


def values(*tensors: torch.Tensor) -> dict[int, bytes]:
    return {rank: to_bytes(tensor) for rank, tensor in enumerate(tensors)}


def test_sums_maxima_and_means() -> None:
    given = values(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 2.0]))
    for kind, expected in (("sum", [4.0, 7.0]), ("max", [3.0, 5.0]), ("avg", [2.0, 3.5])):
        found = results(match("all_reduce", reduce=kind), given)
        assert from_bytes(found[1] or b"", "float32").tolist() == expected


def test_an_unknown_value_makes_the_result_unknown() -> None:
    assert results(match("all_reduce", reduce="sum"), values(torch.ones(2))) == {0: None, 1: None}


def test_a_broadcast_gives_what_its_root_has() -> None:
    found = results(match("broadcast", root=1), {1: to_bytes(torch.tensor([7.0, 8.0]))})
    assert from_bytes(found[0] or b"", "float32").tolist() == [7.0, 8.0]


def test_uneven_pieces_are_exchanged() -> None:
    first = with_splits(to_bytes(torch.tensor([1.0, 2.0, 3.0])), (1, 2))
    second = with_splits(to_bytes(torch.tensor([4.0, 5.0])), (1, 1))
    both = Match(
        (
            Post(0, 0, "all_to_all", "w", (0, 1), "float32", in_splits=(1, 2), out_splits=(1, 1)),
            Post(1, 0, "all_to_all", "w", (0, 1), "float32", in_splits=(1, 1), out_splits=(2, 1)),
        )
    )
    found = results(both, {0: first, 1: second})
    assert from_bytes(found[0] or b"", "float32").tolist() == [1.0, 4.0]
    assert from_bytes(found[1] or b"", "float32").tolist() == [2.0, 3.0, 5.0]
