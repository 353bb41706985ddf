"""The example projects: what probes are to find in them, and silence on their clean twins."""

import json
import shutil
from pathlib import Path

import pytest

from torchstone.conductor.probes import run
from torchstone.conductor.probes.run import Subject, probe
from torchstone.conductor.project.survey import survey
from torchstone.core.finding import Finding

HOME = Path(__file__).parents[3] / "examples" / "review"
NAMES = ("amp", "dist_sync", "mla", "moe")
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_TRIAL_SECONDS", 0.0)


def findings_of(name: str, folder: Path) -> tuple[Finding, ...]:
    root = folder / name
    shutil.copytree(HOME / name, root)
    entry = next(item for item in survey(root).entry_points if item.path == "train.py")
    return probe(Subject(root, "train.py", entry.arguments, world=entry.ranks)).findings


@pytest.mark.parametrize("name", NAMES)
def test_planted_faults_are_found(name: str, tmp_path: Path) -> None:
    found = {(item.rule, item.path) for item in findings_of(name, tmp_path)}
    for fault in json.loads((HOME / f"{name}.faults.json").read_text("utf-8")):
        probes = [rule for rule in fault["rules"] if rule.startswith("PR")]
        if probes and probes != ["PR402"]:  # equal data on all ranks hides that they drift apart
            assert any((rule, fault["file"]) in found for rule in probes), fault


@pytest.mark.parametrize("name", NAMES)
def test_clean_twins_are_left_alone(name: str, tmp_path: Path) -> None:
    assert findings_of(f"{name}_clean", tmp_path) == ()
