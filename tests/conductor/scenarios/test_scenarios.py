"""Every scenario has the boxes and checkpoints of the workflow, bound to rules that exist."""

from pathlib import Path

import pytest

from torchstone.conductor.checkpoints import decide
from torchstone.conductor.probes.checks import all_checks
from torchstone.conductor.probes.ranks import ALL_RULES
from torchstone.conductor.project.facts import Feature, ProjectFacts
from torchstone.conductor.project.survey import survey
from torchstone.conductor.scenarios import all_scenarios
from torchstone.conductor.tools import all_tools
from torchstone.core.place import Place


@pytest.mark.parametrize("name", ["mla", "moe", "dist-sync", "amp"])
def test_six_boxes_and_four_checkpoints(name: str) -> None:
    scenario = all_scenarios()[name]
    assert len(scenario.STEPS) == 6
    assert len(scenario.CHECKPOINTS) == 4
    for checkpoint in scenario.CHECKPOINTS:
        assert set(checkpoint.tools) <= set(all_tools())


def test_probes_of_checkpoints_exist() -> None:
    known = {*all_checks(), *(rule.id for rule in ALL_RULES)}
    used = {rule for scenario in all_scenarios().values() for checkpoint in scenario.CHECKPOINTS
            for rule in checkpoint.rules if rule.startswith("PR")}  # fmt: skip
    assert used <= known


def test_a_scenario_is_found_by_its_features() -> None:
    facts = ProjectFacts("x", 1, 1, components=(Feature("MLA", (Place("a.py", 1),)),))
    assert [name for name, item in all_scenarios().items() if item.applies(facts)] == ["mla"]


@pytest.mark.parametrize("name", ["amp", "mla", "moe", "dist_sync"])
def test_the_example_of_a_scenario_is_recognised(name: str) -> None:
    facts = survey(Path(__file__).parents[3] / "examples" / "review" / name)
    assert name.replace("_", "-") in [key for key, item in all_scenarios().items() if item.applies(facts)]  # fmt: skip


def test_silence_of_static_rules_alone_passes_nothing_that_runs_could_fail() -> None:
    checkpoint = all_scenarios()["amp"].CHECKPOINTS[0]
    assert set(checkpoint.tools) == {"probes", "lint"}
    rule = next(name for name in checkpoint.rules if name.startswith("PR"))

    def state(ran: tuple[str, ...], *held: str) -> str:
        return decide("amp", checkpoint, (), ran, held).state

    assert [state(()), state(("lint",), rule), state(("lint", "probes"))] == ["warning"] * 3
    assert state(("lint", "probes"), rule) == "good"  # asked of something that could have broken it
