"""What is sent, by the ring formulas, on paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cost.toys import ROUND, toy
from torchstone.core.text import Text
from torchstone.cost.on_devices.fitting import fit
from torchstone.cost.on_devices.plan import Plan
from torchstone.cost.on_devices.traffic import Traffic, sent


def messages(plan: Plan, moe: bool = False, **more: Any) -> list[tuple[str, int, int, int]]:
    found = fit(toy(moe=moe), ROUND, plan, suggest=False, **more)
    return [(item.kind, item.group, item.times, item.sent_bytes) for item in found.traffic]


def test_the_ring() -> None:
    assert sent("all-reduce", 1000, 4) == 1500
    assert sent("all-gather", 1000, 4) == 750
    assert sent("reduce-scatter", 1000, 4) == 750
    assert sent("all-to-all", 1000, 4) == 750
    assert sent("send", 1000, 2) == 1000
    assert sent("all-reduce", 10, 3) == 14  # 13.33 rounded up
    assert sent("all-gather", 10**18 + 1, 2) == (10**18 + 2) // 2  # whole numbers, no floats


def test_alone_nothing_is_sent() -> None:
    assert messages(Plan()) == []
    assert messages(Plan(zero=3)) == []


def test_data_parallel() -> None:
    assert messages(Plan(data=4)) == [("all-reduce", 4, 1, 5232)]
    assert messages(Plan(data=4, micro_batches=3)) == [("all-reduce", 4, 1, 5232)]


def test_zero() -> None:
    one = [("reduce-scatter", 4, 1, 2616), ("all-gather", 4, 1, 2616)]
    assert messages(Plan(data=4, zero=1)) == one
    # gradients are scattered after each of the three passes
    two = [("reduce-scatter", 4, 3, 7848), ("all-gather", 4, 1, 2616)]
    assert messages(Plan(data=4, zero=2, micro_batches=3)) == two
    # and parameters are gathered twice in each
    three = [("reduce-scatter", 4, 3, 7848), ("all-gather", 4, 6, 15_696)]
    assert messages(Plan(data=4, zero=3, micro_batches=3)) == three


def test_tensor_parallel() -> None:
    # two blocks, twice in each, forward and backward: eight rounds of 160 bytes
    assert messages(Plan(tensor=2)) == [("all-gather", 2, 8, 640), ("reduce-scatter", 2, 8, 640)]
    plain = Plan(tensor=2, sequence_parallel=False)
    assert messages(plain) == [("all-reduce", 2, 8, 1280)]
    assert messages(replace(plain, checkpoint="full")) == [("all-reduce", 2, 12, 1920)]


def test_pipeline() -> None:
    assert messages(Plan(pipeline=2, micro_batches=5)) == [("send", 2, 5, 800)]
    # a stage in the middle sends activations on and gradients back
    found = fit(toy(layers=4), ROUND, Plan(pipeline=4, micro_batches=5), suggest=False)
    assert [(item.times, item.sent_bytes) for item in found.traffic] == [(10, 1600)]


def test_experts() -> None:
    plan = Plan(data=4, expert=2)
    found = messages(plan, moe=True, experts_per_token=2)
    # dense gradients over 4, those of the experts (half of 1536 bytes) over the 2 that share them;
    # two blocks, there and back, forward and backward: eight rounds of 2 x 160 bytes
    assert found == [
        ("all-reduce", 4, 1, 5232),
        ("all-reduce", 2, 1, 768),
        ("all-to-all", 2, 8, 8 * 160),
    ]


def test_time_over_link_and_network() -> None:
    near = fit(toy(), ROUND, Plan(data=4), suggest=False)
    assert [item.within_node for item in near.traffic] == [True]
    assert near.communication_seconds == 523.2
    far = fit(toy(), ROUND, Plan(data=8), suggest=False)
    assert [item.within_node for item in far.traffic] == [False]
    assert far.communication_seconds == 2 * 7 * 3488 / 8
    mixed = fit(toy(), ROUND, Plan(data=2, tensor=4), suggest=False)
    assert {item.group: item.within_node for item in mixed.traffic} == {2: False, 4: True}


def test_an_unknown_bandwidth_gives_no_time() -> None:
    alone = replace(ROUND, network_bytes_per_second=None)
    found = fit(toy(), alone, Plan(data=8), suggest=False)
    assert found.communication_seconds is None
    assert found.sent_bytes == 6104
    assert found.traffic_table().rows[0][-1] is None


@pytest.mark.parametrize("times", [1, 7])
def test_rounds_add_up(times: int) -> None:
    item = Traffic("all-gather", Text("x", "x"), 4, times, 1000, True, 10.0)
    assert (item.sent_bytes, item.seconds) == (750 * times, 75.0 * times)
