"""Degrees that can be and degrees that cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchstone.core.errors import UsageError
from torchstone.cost.on_devices.plan import OPTIMIZERS, Plan, share, shares


def test_the_world_is_the_product() -> None:
    plan = Plan(data=8, tensor=4, pipeline=2, expert=4)
    plan.check(64)
    assert (plan.world, plan.expert_data) == (64, 2)


@pytest.mark.parametrize(
    ("plan", "world", "said"),
    [
        (Plan(data=0), None, "plan data"),
        (Plan(tensor=-1), None, "plan tensor"),
        (Plan(pipeline=True), None, "plan pipeline"),
        (Plan(micro_batches=0), None, "micro_batches"),
        (Plan(micro_batch=0), None, "micro_batch"),
        (Plan(zero=4), None, "0 to 3"),
        (Plan(zero=-1), None, "plan zero"),
        (Plan(checkpoint="some"), None, "plan checkpoint"),
        (Plan(optimizer="adam"), None, "did you mean 'adamw'"),
        (Plan(data=4, expert=3), None, "divisor"),
        (Plan(data=4, expert=8), None, "divisor"),
        (Plan(data=4), 8, "= 8 devices"),
        (Plan(data=4), 0, "world"),
    ],
)
def test_plans_that_cannot_be(plan: Plan, world: int | None, said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        plan.check(world)
    assert error.value.say("zh") != error.value.say("en")


def test_bytes_of_optimizer_state() -> None:
    rates = {name: float(item.bytes_per_parameter) for name, item in OPTIMIZERS.items()}
    assert rates == {
        "measured": 8.0,
        "sgd": 0.0,
        "sgd-momentum": 4.0,
        "adamw": 8.0,
        "adamw-mixed": 12.0,
        "adamw-8bit": 2.03125,
    }


@given(st.integers(0, 10**15), st.integers(1, 10_000))
def test_shares_add_up_to_the_whole(total: int, parts: int) -> None:
    split = shares(total, parts)
    assert sum(split) == total
    assert len(split) == parts
    assert max(split) - min(split) <= 1
    assert max(split) == split[0] == share(total, parts)
