"""What only several ranks together show; one file for each kind of fact."""

from __future__ import annotations

from pathlib import Path

from torchstone.conductor.probes.ranks import exchange, files_and_data, weights
from torchstone.conductor.probes.ranks.facts import RankFacts, facts_of
from torchstone.conductor.probes.rules import Shown

ALL_RULES = (*files_and_data.RULES, *weights.RULES, *exchange.RULES)

__all__ = [
    "ALL_RULES",
    "ASKED_OF_RANKS",
    "RankFacts",
    "compare_ranks",
    "facts_of",
    "held_by_ranks",
]


ASKED_OF_RANKS = (weights.DRIFT.id,)
"""Rules that can say by themselves whether they could be decided."""


def held_by_ranks(ranks: list[RankFacts], shown: list[Shown]) -> tuple[str, ...]:
    """Those that were decided and hold: all where every rank stepped, but ranks that read the same data step with
    the same gradients whether they are averaged or not."""
    broken = {item.rule.id for item in shown}
    if len(ranks) < 2 or not all(item.digests for item in ranks):
        return ()
    first = [item.batches[0][1] for item in ranks if item.batches]
    if len(first) < len(ranks) or len(set(first)) < 2:
        broken |= set(ASKED_OF_RANKS)
    return tuple(rule.id for rule in ALL_RULES if rule.id not in broken)


def compare_ranks(root: Path, ranks: list[RankFacts]) -> list[Shown]:
    """Findings of all ranks together."""
    return [
        *files_and_data.compare(root, ranks),
        *weights.compare(root, ranks),
        *exchange.compare(root, ranks),
    ]
