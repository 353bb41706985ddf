"""The example projects: what probes are to find in them, and silence on their clean twins."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from torchstone import check
from torchstone.conductor.checkpoints import decide
from torchstone.conductor.probes.run import Subject, probe
from torchstone.conductor.project.survey import survey
from torchstone.conductor.scenarios import all_scenarios
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


def test_every_planted_checkpoint_turns_red_and_those_of_the_twin_do_not(example: Example) -> None:
    scenario = example.name.replace("_", "-")
    planted = json.loads((HOME / f"{example.name}.faults.json").read_text("utf-8"))
    states = {}
    for number, checkpoint in enumerate(all_scenarios()[scenario].CHECKPOINTS, 1):
        here = [fault for fault in planted if fault["checkpoint"] == number]
        shown = any(rule.startswith(("PR", "TS")) for fault in here for rule in fault["rules"])
        for name, found in (
            (example.name, example.findings),
            (f"{example.name}_clean", example.on_twin),
        ):
            read = check([str(HOME / name)]).findings
            decided = decide(scenario, checkpoint, (*found, *read), ("probes", "lint"), ())
            states[name, number] = decided.state == "bad"
        # what only dry runs of several ranks show is planted, and tested, elsewhere
        assert states[example.name, number] or not shown, (number, here)
    assert not any(red for (name, _), red in states.items() if name.endswith("_clean")), states


def test_clean_twins_are_left_alone(example: Example) -> None:
    assert example.on_twin == ()
