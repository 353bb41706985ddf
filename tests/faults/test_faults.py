"""What `check` found of the planted faults may not get worse, and clean twins stay quiet."""

from __future__ import annotations

import pytest
from tests.faults.measure import (
    FOLDER,
    GROUPS,
    Outcome,
    Result,
    alarms,
    cases,
    fault_in,
    measure_all,
    recall,
)
from torchstone.core.finding import Severity
from torchstone.lint.catalog import all_rules

# group: recall measured on the tuning half. Raise a number when a rule gets better.
MEASURED = {
    "precision": 8 / 8,
    "correctness": 9 / 9,
    "performance": 11 / 11,
    "distributed": 11 / 11,
    "upgrade": 6 / 6,
}
KEPT = 0.9  # the share of it that must remain
HIGH_ALARMS = 0  # findings of severity HIGH on the clean twins of both halves


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return measure_all()


@pytest.mark.parametrize("group", GROUPS)
def test_recall_of_the_tuning_half_is_kept(group: str, results: list[Result]) -> None:
    part = [item for item in results if item.group == group and item.half == "tuning"]
    lost = [item.name for item in part if item.outcome is not Outcome.FOUND]
    assert recall(part) >= KEPT * MEASURED[group], f"not found: {', '.join(lost)}"


def test_clean_twins_raise_no_new_high_alarm(results: list[Result]) -> None:
    cries = [
        f"{item.name}: {alarm.name} at line {alarm.line}"
        for item in results
        for alarm in item.alarms
        if alarm.severity is Severity.HIGH
    ]
    assert alarms(results)[Severity.HIGH] <= HIGH_ALARMS, "\n".join(cries)


def test_every_case_names_a_rule_and_has_a_clean_twin() -> None:
    known = {word for rule in all_rules() for word in (rule.code, rule.name)}
    for folder in cases():
        tree = (folder / "bad").is_dir()
        bad, good = (folder / (kind if tree else f"{kind}.py") for kind in ("bad", "good"))
        assert fault_in(bad).rule in known, folder.name
        with pytest.raises(ValueError, match="0 FAULT marks"):
            fault_in(good)


def test_no_folder_is_left_out() -> None:
    folders = {path for path in FOLDER.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders == set(cases())
