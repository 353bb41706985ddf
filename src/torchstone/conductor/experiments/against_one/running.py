"""Two ranks, then one process with their data; a finding where the gradients part."""

from __future__ import annotations

import functools
import importlib
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from torchstone.conductor.experiments.against_one import ALONE, HELD, TOOL
from torchstone.conductor.experiments.against_one.comparing import RULES, compare_tapes
from torchstone.conductor.experiments.against_one.playing import Player, write_tape
from torchstone.conductor.experiments.against_one.tape import (
    CannotJoinError,
    are_uneven_replicas,
    load_tape,
    tape_name,
)
from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.probes.processes import answers_of
from torchstone.conductor.probes.rules import finding_of
from torchstone.core.codec import from_data, to_data
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.core.text import Message, Text

_HOW = Text("gradients before the first step, float32", "首次更新之前的梯度，float32")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the process that compares says."""

    findings: tuple[Finding, ...] = ()
    why: str = ""
    """Why nothing could be decided."""
    uneven: bool = False
    """The ranks are replicas that do not begin with the same weights."""


@dataclass(frozen=True, slots=True)
class Alone:
    """The first gradient of the program as it runs on one process, in two numbers."""

    norm: float = 0.0
    projection: float = 0.0


def compare_with_one(start: Start, world: int) -> Report:
    """The program on `world` ranks against the same program on one."""
    importlib.import_module("torch._dynamo")  # collectives need it: loaded once for all processes
    command = " ".join((f"torchrun --nproc-per-node={world}", start.script, *start.arguments))
    with tempfile.TemporaryDirectory(prefix="tapes-") as name:
        folder = Path(name)
        outcome = _play(start, world, folder, command, even=False)
        if outcome.uneven:  # which is a fault of its own, and hides all others
            even = _play(start, world, folder, command, even=True)
            outcome = even if even.findings else outcome
        ((own, _),) = answers_of([functools.partial(_alone, start)])
    gaps: tuple[Gap, ...] = ()
    measures = _signature(from_data(Alone, json.loads(own), "alone") if own else Alone())
    if outcome.why:
        said = Message(
            "experiments.not-decided",
            Text(
                "ranks were not compared with one process: {why}",
                "未能将各 rank 与单进程比较：{why}",
            ),
            {"why": outcome.why},
        )
        gaps = (Gap(start.script, said, command, tool=TOOL),)
    else:
        held = float(not outcome.findings)
        label = Text("ranks agree with one process", "各 rank 与单进程一致")
        measures = (Measure(HELD, held, "", _HOW, label, tool=TOOL), *measures)
    rules = {rule.id: rule.info() for rule in RULES}
    return Report(TOOL, outcome.findings, measures, gaps, rules=rules, subject=command)


def _play(start: Start, world: int, folder: Path, command: str, even: bool) -> Outcome:
    """All ranks, then one process with what they used."""
    store = str(folder / f"store-{even}")
    works = [
        functools.partial(write_tape, start, rank, world, store, folder, even)
        for rank in range(world)
    ]
    if any(text is None for text, _ in answers_of(works)):
        return Outcome(why="a rank did not come to its end")
    ((text, _),) = answers_of([functools.partial(_compared, start, world, folder, command, even)])
    if not text:
        return Outcome(why="the run on one process did not come to its end")
    return from_data(Outcome, json.loads(text), "outcome")


def _signature(alone: Alone) -> tuple[Measure, ...]:
    """A fix for several ranks must leave the program on one process as it was: these two show it."""
    label = Text("first gradient of one process", "单进程的首个梯度")
    return (
        Measure(ALONE[0], alone.norm, "", _HOW, label, tool=TOOL),
        Measure(ALONE[1], alone.projection, "", _HOW, label, tool=TOOL),
    )


def _alone(start: Start) -> str:
    tape = Player(start).play()
    first = [item for item in (tape.gradients[0] if tape.gradients else ()) if item is not None]
    if not first:
        return json.dumps(to_data(Alone()))
    whole = torch.cat([item.flatten() for item in first]).double()
    generator = torch.Generator().manual_seed(5)
    other = torch.randn(whole.shape, generator=generator, dtype=torch.float64)
    return json.dumps(to_data(Alone(float(whole.norm()), float(whole @ other))))


def _compared(start: Start, world: int, folder: Path, command: str, even: bool) -> str:
    tapes = [load_tape(folder / tape_name(rank, even)) for rank in range(world)]
    try:
        one = Player(start, given=tuple(tapes)).play()
    except CannotJoinError as error:
        return json.dumps(to_data(Outcome(why=str(error))))
    if one.ended.startswith(CannotJoinError.__name__):
        return json.dumps(to_data(Outcome(why=one.ended)))
    found = compare_tapes(one, tapes)
    if isinstance(found, str):
        return json.dumps(to_data(Outcome(why=found)))
    findings = tuple(
        replace(finding_of(item, start.root, command), tool=TOOL) for item in found if item.place
    )
    return json.dumps(to_data(Outcome(findings, uneven=are_uneven_replicas(one, tapes))))
