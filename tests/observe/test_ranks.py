"""torch's many ways to call a process group, each read as one `Collective`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from torchstone.observe.ranks import ANY_RANK, Collective, StandInGroup, check_splits


class Recorded(StandInGroup):
    """Writes down what it is asked."""

    def __init__(self, rank: int = 1, size: int = 2) -> None:
        super().__init__(rank, size, "gloo")
        self.asked: list[Collective] = []
        self.waited: list[Collective] = []
        self.joined = 0

    def perform(self, collective: Collective) -> Any:
        self.asked.append(collective)
        return SimpleNamespace(wait=lambda: self.waited.append(collective))

    def join(self, works: Any) -> Any:
        self.joined = len(works)
        return works


def rows(*lengths: int) -> list[torch.Tensor]:
    return [torch.full((length,), float(place)) for place, length in enumerate(lengths)]


A, B, C, D = rows(4, 4, 2, 2)
SUM = SimpleNamespace(reduceOp=dist.ReduceOp.MAX)
ROOT = SimpleNamespace(rootRank=1, reduceOp=dist.ReduceOp.MIN)
OTHER = SimpleNamespace(rootRank=0, reduceOp=dist.ReduceOp.MIN)
CALLS: list[tuple[str, Callable[[Recorded], Any], dict[str, Any]]] = [
    ("allreduce", lambda g: g.allreduce([A], SUM),
     {"kind": "all_reduce", "inputs": (A,), "outputs": (A,), "result": [A], "reduce": "max"}),
    ("allreduce of one", lambda g: g.allreduce(A), {"inputs": (A,), "reduce": "sum"}),
    ("allreduce by an operation", lambda g: g.allreduce([A], dist.ReduceOp.PRODUCT), {"reduce": "product"}),
    ("allreduce_coalesced", lambda g: g.allreduce_coalesced([A, B], SUM),
     {"kind": "all_reduce", "inputs": (A, B), "result": [A, B], "reduce": "max"}),
    ("broadcast from here", lambda g: g.broadcast([A], ROOT),
     {"kind": "broadcast", "inputs": (A,), "outputs": (), "result": [A], "root": 1, "sends": True}),
    ("broadcast from there", lambda g: g.broadcast([A], OTHER),
     {"outputs": (A,), "root": 0, "sends": False}),
    ("broadcast from a number", lambda g: g.broadcast(A, 1), {"root": 1, "sends": True}),
    ("broadcast without options", lambda g: g.broadcast(A), {"root": 0}),
    ("reduce to here", lambda g: g.reduce([A], ROOT),
     {"kind": "reduce", "inputs": (A,), "outputs": (A,), "result": [A], "root": 1, "reduce": "min"}),
    ("reduce to there", lambda g: g.reduce([A], OTHER), {"outputs": (), "root": 0}),
    ("allgather", lambda g: g.allgather([[A, B]], [C]),
     {"kind": "all_gather", "inputs": (C,), "outputs": (A, B), "result": [[A, B]]}),
    ("allgather of one", lambda g: g.allgather([A, B], C),
     {"inputs": (C,), "outputs": (A, B), "result": [[A, B]]}),
    ("all_gather_single", lambda g: g.all_gather_single(A, C),
     {"kind": "all_gather", "inputs": (C,), "outputs": (A,), "result": [A]}),
    ("_allgather_base", lambda g: g._allgather_base(A, C), {"kind": "all_gather", "outputs": (A,)}),
    ("gather", lambda g: g.gather([[A, B]], [C], ROOT),
     {"kind": "gather", "inputs": (C,), "outputs": (A, B), "result": [[A, B]], "root": 1}),
    ("scatter from here", lambda g: g.scatter([C], [[A, B]], ROOT),
     {"kind": "scatter", "inputs": (A, B), "outputs": (C,), "result": [C], "shape_of": C, "root": 1,
      "sends": True}),
    ("scatter from there", lambda g: g.scatter(C, [], OTHER), {"inputs": (), "sends": False, "root": 0}),
    ("reduce_scatter", lambda g: g.reduce_scatter([C], [[A, B]], SUM),
     {"kind": "reduce_scatter", "inputs": (A, B), "outputs": (C,), "result": [C], "shape_of": C,
      "reduce": "max"}),
    ("reduce_scatter of one", lambda g: g.reduce_scatter(C, [A, B]),
     {"inputs": (A, B), "outputs": (C,), "result": [C], "reduce": "sum"}),
    ("reduce_scatter_single", lambda g: g.reduce_scatter_single(C, A, SUM),
     {"kind": "reduce_scatter", "inputs": (A,), "outputs": (C,), "result": [C], "shape_of": C,
      "reduce": "max"}),
    ("_reduce_scatter_base", lambda g: g._reduce_scatter_base(C, A), {"outputs": (C,), "reduce": "sum"}),
    ("all_to_all_single", lambda g: g.all_to_all_single(A, B),
     {"kind": "all_to_all", "inputs": (B,), "outputs": (A,), "result": [A], "in_splits": (2, 2),
      "out_splits": (2, 2)}),
    ("alltoall_base", lambda g: g.alltoall_base(A, B, [1, 3], [4, 0]),
     {"in_splits": (4, 0), "out_splits": (1, 3)}),
    ("alltoall", lambda g: g.alltoall([A, C], [D, B]),
     {"kind": "all_to_all", "inputs": (D, B), "outputs": (A, C), "result": [A, C], "in_splits": (2, 4),
      "out_splits": (4, 2)}),
    ("barrier", lambda g: g.barrier(), {"kind": "barrier", "inputs": (), "outputs": ()}),
    ("send", lambda g: g.send([A], 0, 7),
     {"kind": "send", "inputs": (A,), "outputs": (), "result": [A], "peer": 0, "tag": 7, "sends": True}),
    ("recv", lambda g: g.recv([A], 0),
     {"kind": "recv", "inputs": (), "outputs": (A,), "result": [A], "peer": 0, "tag": 0, "sends": False}),
    ("recv_anysource", lambda g: g.recv_anysource([A], 3), {"kind": "recv", "peer": ANY_RANK, "tag": 3}),
]  # fmt: skip


def same(left: Any, right: Any) -> bool:
    """Tensors by identity."""
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return left is right or (not isinstance(left, torch.Tensor) and bool(left == right))


@pytest.mark.parametrize(("call", "wanted"), [row[1:] for row in CALLS], ids=[r[0] for r in CALLS])
def test_a_call_is_one_collective(call: Callable[[Recorded], Any], wanted: dict[str, Any]) -> None:
    group = Recorded()
    assert call(group) is not None
    [asked] = group.asked
    found = {name: getattr(asked, name) for name in wanted}
    assert all(same(found[name], value) for name, value in wanted.items()), found
    if "peer" not in wanted:
        assert (asked.peer, asked.tag) == (ANY_RANK, 0)
    if "root" not in wanted:
        assert asked.root == ANY_RANK


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda g: g.allgather_coalesced([[A, B], [B, A]], [C, D]), "all_gather"),
        (lambda g: g.all_gather_single_coalesced([A, B], [C, D]), "all_gather"),
        (lambda g: g.allgather_into_tensor_coalesced([A, B], [C, D]), "all_gather"),
        (lambda g: g.reduce_scatter_single_coalesced([C, D], [A, B], SUM), "reduce_scatter"),
        (lambda g: g.reduce_scatter_tensor_coalesced([C, D], [A, B]), "reduce_scatter"),
    ],
)
def test_several_are_waited_for_as_one(call: Callable[[Recorded], Any], kind: str) -> None:
    group = Recorded()
    assert len(call(group)) == group.joined == 2
    assert [asked.kind for asked in group.asked] == [kind, kind]
    assert group.asked[0].inputs[0] is not group.asked[1].inputs[0]


def test_a_group_says_who_it_is() -> None:
    group = Recorded(rank=2, size=5)
    assert (group.rank(), group.size(), group.getBackendName()) == (2, 5, "gloo")
    assert group._get_sequence_number_for_group() == 0
    assert group._has_hooks() is False


def test_a_monitored_barrier_is_waited_for() -> None:
    group = Recorded()
    group.monitored_barrier()
    assert group.waited == group.asked != []


@pytest.mark.parametrize(
    ("splits", "said"),
    [([4], "not equal to group size: 1 for 2"), ([1, 1], r"\[1, 1\] for \(4,\)")],
)
def test_splits_that_torch_refuses_are_refused(splits: list[int], said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        check_splits(A, splits, 2)
    with pytest.raises(RuntimeError, match=said):
        Recorded().all_to_all_single(A, B, None, splits)
    check_splits(A, [3, 1], 2)
