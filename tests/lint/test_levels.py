"""HIGH is earned: a rule that blind readers found wrong too often shows at most MEDIUM."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.lint.score import verdicts

from torchstone.core.finding import Severity
from torchstone.lint.catalog import all_rules

FIRST_LIST = ("TS101", "TS102", "TS103")
"""The checks that the first requirements put at HIGH keep that level."""
ENOUGH = 5
"""Pairs of repository and rule; fewer say little."""
RIGHT = 0.9


def test_levels_follow_the_record() -> None:
    pairs: dict[str, dict[str, bool]] = defaultdict(dict)
    for item in verdicts():
        if item.severity == "HIGH" and item.set != "tune":
            known = pairs[item.rule].get(item.repository, True)
            pairs[item.rule][item.repository] = known and item.verdict == "right"
    wrong = {
        rule
        for rule, rows in pairs.items()
        if len(rows) >= ENOUGH and sum(rows.values()) / len(rows) < RIGHT
    }
    capped = {rule.code for rule in all_rules() if rule.highest is not Severity.HIGH}
    assert capped == wrong - set(FIRST_LIST)


def test_a_capped_rule_never_says_high() -> None:
    for rule in all_rules():
        if rule.highest is not Severity.HIGH:
            assert rule.severity is not Severity.HIGH
