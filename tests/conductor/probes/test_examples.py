"""The example projects: what probes are to find in them, and silence on their clean twins."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from torchstone.conductor.probes.run import Subject, probe
from torchstone.conductor.project.survey import survey
from torchstone.core.finding import Finding

HOME = Path(__file__).parents[3] / "examples" / "review"
NAMES = ("amp", "dist_sync", "mla", "moe")
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Example:
    """A project with planted faults, and what is found in it and in its repaired twin."""

    name: str
    findings: tuple[Finding, ...]
    on_twin: tuple[Finding, ...]


@pytest.fixture(scope="session", params=NAMES)
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Example:
    """One run of a project and one of its twin, for all tests."""
    home = tmp_path_factory.mktemp(request.param)
    name: str = request.param
    return Example(name, _findings_of(name, home), _findings_of(f"{name}_clean", home))


def _findings_of(name: str, home: Path) -> tuple[Finding, ...]:
    root = home / name
    shutil.copytree(HOME / name, root)
    entry = next(item for item in survey(root).entry_points if item.path == "train.py")
    subject = Subject(root, "train.py", entry.arguments, world=entry.ranks)
    return probe(subject, try_fixes=False).findings


def test_planted_faults_are_found(example: Example) -> None:
    found = {(item.rule, item.path) for item in example.findings}
    for fault in json.loads((HOME / f"{example.name}.faults.json").read_text("utf-8")):
        probes = [rule for rule in fault["rules"] if rule.startswith("PR")]
        if probes and probes != ["PR402"]:  # equal data on all ranks hides that they drift apart
            assert any((rule, fault["file"]) in found for rule in probes), fault


def test_clean_twins_are_left_alone(example: Example) -> None:
    assert example.on_twin == ()
