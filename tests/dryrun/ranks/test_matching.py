"""The matcher, without processes."""

from __future__ import annotations

from typing import Any

from torchstone.dryrun.ranks.matching import Matcher
from torchstone.dryrun.ranks.posts import ANY, NEW_GROUP, RECV, SEND, Post


def post(rank: int, number: int = 0, op: str = "all_reduce", world: int = 2, **facts: Any) -> Post:
    facts.setdefault("group", "world")
    facts.setdefault("members", tuple(range(world)))
    return Post(rank, number, op, dtype="float32", shape=facts.pop("shape", (4,)), **facts)


def test_a_collective_is_matched_when_all_members_have_posted_it() -> None:
    matcher = Matcher(range(2))
    assert matcher.post(post(0)) == []
    (match,) = matcher.post(post(1))
    assert [item.rank for item in match.posts] == [0, 1]
    assert not matcher.disagreements


def test_another_operation_shape_root_or_reduction_is_a_disagreement() -> None:
    for kind, other in (
        ("operation", {"op": "barrier"}),
        ("shape", {"shape": (5,)}),
        ("root", {"root": 1}),
        ("reduce", {"reduce": "max"}),
    ):
        matcher = Matcher(range(2))
        matcher.post(post(0))
        matcher.post(post(1, **other))  # type: ignore[arg-type]
        assert [item.kind for item in matcher.disagreements] == [kind]


def test_ranks_of_other_groups_do_not_hold_up_a_group() -> None:
    matcher = Matcher(range(4))
    pair = {"group": "pair", "members": (0, 1)}
    matcher.post(post(0, **pair))
    assert matcher.post(post(1, **pair))


def test_what_is_sent_must_be_what_is_taken() -> None:
    matcher = Matcher(range(2))
    matcher.post(post(0, op="all_to_all", in_splits=(1, 2), out_splits=(1, 3)))
    matcher.post(post(1, op="all_to_all", in_splits=(3, 1), out_splits=(2, 1)))
    assert not matcher.disagreements
    matcher.post(post(0, 1, op="all_to_all", in_splits=(1, 2), out_splits=(1, 3)))
    matcher.post(post(1, 1, op="all_to_all", in_splits=(3, 1), out_splits=(9, 1)))
    assert matcher.disagreements[0].kind == "splits"


def test_a_send_waits_for_its_receive_and_tags_must_agree() -> None:
    matcher = Matcher(range(2))
    sent = post(0, op=SEND, peer=1, tag=7)
    assert matcher.post(sent) == []
    assert matcher.waiting_for(sent) == (1,)
    assert matcher.post(post(1, op=RECV, peer=0, tag=8)) == []
    assert matcher.post(post(1, 1, op=RECV, peer=0, tag=7))


def test_a_receive_from_anyone_takes_the_message_that_is_there() -> None:
    matcher = Matcher(range(3))
    matcher.post(post(2, op=SEND, peer=0))
    (match,) = matcher.post(post(0, op=RECV, peer=ANY))
    assert match.posts[0].rank == 2


def test_groups_must_be_made_with_the_same_ranks() -> None:
    matcher = Matcher(range(2))
    matcher.post(post(0, op=NEW_GROUP, group="new_group", members=(0, 1)))
    matcher.post(post(1, op=NEW_GROUP, group="new_group", members=(1,)))
    assert matcher.disagreements[0].kind == "group"


def test_absent_ranks_are_not_waited_for() -> None:
    matcher = Matcher((0, 7))
    matcher.post(post(0, world=8))
    (match,) = matcher.post(post(7, world=8))
    assert match.absent == (1, 2, 3, 4, 5, 6)
    assert matcher.post(post(0, 1, op=SEND, peer=3, world=8))
