"""What only several ranks together show; one file for each kind of fact."""

from __future__ import annotations

from pathlib import Path

from torchstone.conductor.probes.ranks import exchange, files_and_data, weights
from torchstone.conductor.probes.ranks.facts import RankFacts, facts_of
from torchstone.conductor.probes.rules import Shown

ALL_RULES = (*files_and_data.RULES, *weights.RULES, *exchange.RULES)

__all__ = ["ALL_RULES", "RankFacts", "compare_ranks", "facts_of"]


def compare_ranks(root: Path, ranks: list[RankFacts]) -> list[Shown]:
    """Findings of all ranks together."""
    return [
        *files_and_data.compare(root, ranks),
        *weights.compare(root, ranks),
        *exchange.compare(root, ranks),
    ]
