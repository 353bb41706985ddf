"""Plays all ranks in the warm process and tells the process that asked."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from torchstone.core.codec import to_data
from torchstone.core.place import Place
from torchstone.dryrun.ranks.classes import ranks_to_play
from torchstone.dryrun.ranks.coordinator import Played
from torchstone.dryrun.ranks.faults import faults_of, out_of_time
from torchstone.dryrun.ranks.lanes import lanes_of, volume_of
from torchstone.dryrun.ranks.play import play
from torchstone.dryrun.ranks_record import RankHazard, RanksRecord
from torchstone.dryrun.record import Hazard, Progress, Record
from torchstone.dryrun.rules import DRIFT, WRONG_GROUP
from torchstone.dryrun.settings import ScriptSettings


def play_and_report(
    settings: ScriptSettings, program: Callable[[ScriptSettings], Any], write: int
) -> None:
    """Run all ranks and put one record on the pipe."""
    ranks = ranks_to_play(settings.world_size, settings.local_ranks())
    record = summary(settings, ranks, play(settings, ranks, program))
    data = json.dumps(to_data(record), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
    while data:
        data = data[os.write(write, data) :]


def summary(settings: ScriptSettings, ranks: tuple[int, ...], played: list[Played]) -> RanksRecord:
    local = settings.local_ranks()
    faults = [fault for one in played for fault in faults_of(one)]
    telling = next((one for one in played if faults_of(one)), played[0])
    times = os.times()
    return RanksRecord(
        world_size=settings.world_size,
        local_world_size=local,
        played=ranks,
        passes=len(played),
        matches=telling.matches,
        faults=tuple(faults[:8]),
        lanes=lanes_of(telling),
        volume=volume_of(played[0], local),
        progress=_most_of(list(played[0].records.values())),
        unreached=_reached_by_none(list(played[0].records.values())),
        record=_telling_record(telling),
        hazards=merged_hazards(played[0].records),
        largest=max(
            (item.memory for item in played[0].records.values() if item.memory is not None),
            key=lambda memory: memory.peak_bytes,
            default=None,
        ),
        memory=tuple(
            (rank, item.memory.peak_bytes)
            for rank, item in sorted(played[0].records.items())
            if item.memory is not None
        ),
        died=telling.died,
        out_of_time=out_of_time(telling),
        real_parameters=any("real-parameters" in item.notes for item in played[0].records.values()),
        cpu_seconds=times.children_user + times.children_system,
    )


def _most_of(records: list[Record]) -> Progress:
    names = [item.name for item in fields(Progress)]
    return Progress(
        *(max((getattr(record.progress, name) for record in records), default=0) for name in names)
    )


def _reached_by_none(records: list[Record]) -> tuple[str, ...]:
    return tuple(
        name
        for name in (records[0].unreached if records else ())
        if all(name in record.unreached for record in records)
    )


def merged_hazards(records: dict[int, Record]) -> tuple[RankHazard, ...]:
    """Each hazard once, with the ranks that have it."""
    ranks: dict[tuple[str, str, Place, str], list[int]] = defaultdict(list)
    first: dict[tuple[str, str, Place, str], Hazard] = {}
    for rank, record in sorted(records.items()):
        for hazard in record.hazards:
            if hazard.rule not in (DRIFT.id, WRONG_GROUP.id):
                key = (hazard.rule, hazard.op, hazard.place, hazard.module)
                first.setdefault(key, hazard)
                ranks[key].append(rank)
    return tuple(RankHazard(hazard, tuple(ranks[key])) for key, hazard in first.items())


def _telling_record(played: Played) -> Record | None:
    for rank in sorted(played.records):
        if played.records[rank].ending == "error":
            return played.records[rank]
    return played.records[min(played.records)] if played.records else None
