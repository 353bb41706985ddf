"""Every true edge of the labelled programs is found, and no other."""

from __future__ import annotations

import pytest
from benchmarks.flow import accuracy, programs_tuned

PROGRAMS = accuracy.programs(programs_tuned)


@pytest.fixture(scope="module")
def scores() -> dict[str, accuracy.Score]:
    """One trace for all: arrays of one program often get the addresses of another's."""
    return {item.name: item for item in accuracy.score_together(PROGRAMS)}


@pytest.mark.parametrize("name", [program.__name__ for program in PROGRAMS])
def test_edges(name: str, scores: dict[str, accuracy.Score]) -> None:
    assert (scores[name].missed, scores[name].false) == ([], [])


def test_a_wrong_label_is_noticed() -> None:
    def program() -> None:
        """resize>flip"""
        programs_tuned.chain()

    score = accuracy.score(program)
    assert score.missed == ["resize>flip"]
    assert score.false == ["cvtColor>divide", "resize>cvtColor"]
