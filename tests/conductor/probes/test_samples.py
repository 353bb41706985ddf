"""Each property on a tiny project: wrong lines are found, their edits remove them, the healthy project is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conductor.probes.samples import EXPERTS, FAULTS, MODEL, SAMPLES
from torchstone.conductor.experiments import HOLDS
from torchstone.conductor.probes.run import Subject, probe
from torchstone.core.finding import Finding
from torchstone.core.fix import apply_edits
from torchstone.core.report import Report

GROUPS = [(name, rules) for name, sample in SAMPLES.items() for rules in sample.together]
NEVER_ASKED = {
    "PR118",  # blocks that restore the state of the generator leave no record
    "PR402",  # the sample has no loader, so that its ranks cannot be known to read different data
}
Found = dict[tuple[str, tuple[str, ...]], tuple[Finding, ...]]


def report_of(folder: Path, text: str, ranks: int = 1) -> Report:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(text, "utf-8")
    report = probe(Subject(folder, "train.py", (), world=ranks), try_fixes=False)
    assert not report.gaps, report.gaps
    return report


def findings_of(folder: Path, text: str, ranks: int = 1) -> tuple[Finding, ...]:
    return report_of(folder, text, ranks).findings


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What is found with each group of faults; one run for each group."""
    home = tmp_path_factory.mktemp("samples")
    return {
        (name, rules): findings_of(
            home / "-".join((name, *rules)), SAMPLES[name].with_faults(rules), SAMPLES[name].ranks
        )
        for name, rules in GROUPS
    }


def test_every_fault_is_in_a_group() -> None:
    for sample in SAMPLES.values():
        assert {rule for rules in sample.together for rule in rules} == set(sample.faults)


@pytest.mark.parametrize("name", SAMPLES)
def test_healthy_projects_are_left_alone(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    report = report_of(tmp_path, sample.text, sample.ranks)
    assert report.findings == ()
    held = {item.name.removeprefix(HOLDS) for item in report.measures if item.value}
    assert set(sample.faults) - NEVER_ASKED <= held  # each was asked of what could have broken it


@pytest.mark.parametrize(("name", "rules"), GROUPS)
def test_planted_faults_are_found_and_nothing_else(
    name: str, rules: tuple[str, ...], found: Found
) -> None:
    assert {item.rule for item in found[name, rules]} == set(rules)


@pytest.mark.parametrize(
    ("name", "rules", "edited"),
    [
        ("model", ("PR101", "PR104", "PR201", "PR207"), {"PR101", "PR104", "PR201"}),
        ("model", ("PR103", "PR105", "PR203", "PR204"), {"PR103", "PR105", "PR204"}),
        ("model", ("PR102", "PR106", "PR108"), {"PR102", "PR106", "PR108"}),
        ("teacher", ("PR108", "PR109"), {"PR108", "PR109"}),
        ("half", ("PR117", "PR118", "PR211", "PR221"), {"PR118", "PR211"}),
        ("experts", ("PR213", "PR301", "PR302", "PR306"), {"PR213", "PR302", "PR306"}),
    ],
)
def test_edits_remove_what_was_found(
    name: str, rules: tuple[str, ...], edited: set[str], found: Found, tmp_path: Path
) -> None:
    fixes = {item.rule: item.fix for item in found[name, rules] if item.fix}
    assert set(fixes) == edited
    edits = [edit for fix in fixes.values() for edit in fix.edits]
    text = apply_edits(SAMPLES[name].with_faults(rules), edits)
    assert {item.rule for item in findings_of(tmp_path, text)} == set(rules) - edited


def test_the_edit_that_is_offered_was_tried(tmp_path: Path) -> None:
    right, wrong = FAULTS["PR201"]
    (tmp_path / "train.py").write_text(MODEL.replace(right, wrong), "utf-8")
    (finding,) = probe(Subject(tmp_path, "train.py", ())).findings
    assert finding.fix is not None
    assert [edit.text for edit in finding.fix.edits] == ["1"]
    assert finding.fix.proof == "python train.py"


def test_a_long_loop_is_left_for_what_comes_after_it(tmp_path: Path) -> None:
    text = EXPERTS.replace("range(4)", "range(10**9)").replace(
        "        model(x)\n", '        model(x)\n    torch.save(model.state_dict(), "end.pt")\n'
    )
    assert findings_of(tmp_path, text) == ()
    assert (tmp_path / "end.pt").exists()


def test_a_rank_that_ends_early_is_not_waited_for(tmp_path: Path) -> None:
    text = SAMPLES["ranks"].text.replace("torch.manual_seed(0)", "if rank: return")
    (tmp_path / "train.py").write_text(text, "utf-8")
    (gap,) = probe(Subject(tmp_path, "train.py", (), world=2), try_fixes=False).gaps
    assert "rank 1 has ended without this collective" in gap.reason.say("en")
