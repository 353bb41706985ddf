"""What runs on a rank and is probably not meant, told once for all ranks that do it."""

from __future__ import annotations

from dataclasses import replace

from torchstone.core.finding import Finding
from torchstone.dryrun.ranks_record import RankHazard
from torchstone.dryrun.reporting.hazards import hazard_finding
from torchstone.dryrun.reporting.ranks.names import with_ranks


def rank_hazard_finding(item: RankHazard, played: tuple[int, ...]) -> Finding:
    found = hazard_finding(item.hazard)
    return replace(found, what=with_ranks(found.what, item.ranks, played))
