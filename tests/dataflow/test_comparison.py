"""Two runs are the same in every bit, within rounding, or different."""

from __future__ import annotations

import numpy as np
import pytest

from torchstone.dataflow.bisection import bisect
from torchstone.dataflow.comparison import differences, outcome_of
from torchstone.dataflow.plan import MigrationPlan


@pytest.mark.parametrize(
    ("before", "after", "rounding"),
    [
        (np.float32([1, 100]), np.float32([1.0005, 100]), True),
        (np.float32([1, 100]), np.float32([1.5, 100]), False),
        (np.uint8([7, 9]), np.uint8([8, 9]), True),
        (np.uint8([7, 9]), np.uint8([9, 9]), False),
        (np.uint8([7, 9]), np.int64([7, 9]), False),
        (np.zeros(3), np.zeros(4), False),
        (np.array([True]), np.array([False]), False),
        (1.0, 1.00001, True),
        (3, 4, False),
    ],
)
def test_what_rounding_explains(before: object, after: object, rounding: bool) -> None:
    (found,) = differences(outcome_of({"x": before}), outcome_of({"x": after}))
    assert found.is_rounding is rounding


def test_equal_results_are_no_difference() -> None:
    left = {"a": [np.arange(3), {"b": np.float32([np.nan])}], "n": float("nan")}
    assert differences(outcome_of(left), outcome_of(left)) == []


@pytest.mark.parametrize("guilty", [1, 12])
def test_a_bisection_says_whether_it_told_the_entries_apart(guilty: int) -> None:
    keys = [f"f/cv2.flip@{line}" for line in range(64)]
    wrong = set(keys[:: 64 // guilty][:guilty])

    def differs(plan: MigrationPlan) -> bool:
        return any(plan.context_device_map[key] != "cpu" for key in wrong)

    found = bisect(MigrationPlan(dict.fromkeys(keys, "cuda:0")), differs)
    assert wrong <= set(found.keys)
    assert found.is_finished == (guilty == 1) == (set(found.keys) == wrong)
