"""Reports add, subtract, travel as JSON and keep their identity."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import torchstone.core.report as report_module
from tests.samples import every_evidence, finding, full_report
from torchstone.core.errors import InputError
from torchstone.core.finding import Severity, fingerprint
from torchstone.core.report import SCHEMA, Report, report_schema

PUBLISHED = Path(report_module.__file__).parent / "report-1.schema.json"


def test_published_schema_is_the_one_in_use() -> None:
    assert json.loads(PUBLISHED.read_text("utf-8")) == report_schema(), "run `make docs`"


def test_report_fits_its_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(report_schema())
    jsonschema.validate(json.loads(full_report().to_json()), report_schema())


@pytest.mark.parametrize("broken", ["findings", "gaps", "environment"])
def test_schema_refuses_what_is_no_report(broken: str) -> None:
    data = json.loads(full_report().to_json())
    del data[broken]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, report_schema())


def test_schema_refuses_a_finding_without_a_rule() -> None:
    data = json.loads(full_report().to_json())
    del data["findings"][0]["rule"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, report_schema())


def test_json_comes_back_whole() -> None:
    report = full_report()
    assert Report.from_json(report.to_json()) == report


def test_every_kind_of_evidence_comes_back_whole() -> None:
    report = Report("x", tuple(finding(evidence=(item,)) for item in every_evidence()))
    assert Report.from_json(report.to_json()) == report


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"schema": "other"}', f'{{"schema": "{SCHEMA}"}}',
        f'{{"schema": "{SCHEMA}", "tool": 3}}',
        f'{{"schema": "{SCHEMA}", "tool": "x", "findings": [{{}}]}}',
        f'{{"schema": "{SCHEMA}", "tool": "x", "findings": [{{"evidence": [{{"kind": "bomb"}}]}}]}}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_hostile_json_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        Report.from_json(text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda c: (
            st.lists(c, max_size=3)
            | st.dictionaries(
                st.sampled_from(["tool", "findings", "rule", "kind", "evidence", "location"]),
                c,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_report_or_an_input_error(value: object) -> None:
    data = {"schema": SCHEMA, **(value if isinstance(value, dict) else {"tool": value})}
    with contextlib.suppress(InputError):
        assert isinstance(Report.from_json(json.dumps(data)), Report)


def test_reports_add_without_duplicates() -> None:
    a, b = finding(line=1), finding(line=9, mark="other")
    both = Report("check", (a,)) + Report("check", (a, b))
    assert both.findings == (a, b)
    assert both.tool == "check"


def test_reports_subtract_by_fingerprint() -> None:
    old = finding(line=1)
    moved = finding(line=50)
    new = finding(line=3, mark="new")
    assert (Report("check", (moved, new)) - Report("check", (old,))).findings == (new,)


def test_two_equal_findings_are_two() -> None:
    twice = Report("check", (finding(line=1), finding(line=2)))
    assert len((twice - Report("check", (finding(line=1),))).findings) == 1


def test_at_least() -> None:
    low = replace(finding(), severity=Severity.LOW)
    report = Report("check", (finding(), low))
    assert report.at_least(Severity.HIGH) == (finding(),)
    assert len(report.at_least(Severity.LOW)) == 2


def test_a_finding_needs_evidence() -> None:
    with pytest.raises(ValueError, match="evidence"):
        finding(evidence=())


def test_fingerprint_ignores_white_space_and_tells_twins_apart() -> None:
    assert fingerprint("R", "f", "x  =  1") == fingerprint("R", "f", "x =\n 1")
    assert fingerprint("R", "f", "x = 1") != fingerprint("R", "f", "x = 2")
    assert fingerprint("R", "f", "x", 0) != fingerprint("R", "f", "x", 1)
    assert fingerprint("R", "f", "x") != fingerprint("R", "g", "x")
