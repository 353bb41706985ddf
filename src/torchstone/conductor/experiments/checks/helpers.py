"""What a check may do with a program of the project: run it, on one process or several, and compare what it did.

    def test_ranks_give_the_gradients_of_one_process():
        ranks = run_ranks(2, "train.py", "--epochs", "1")
        compare(ranks[0].gradients, join_ranks(ranks).gradients)

They are imported from `torchstone.checks`. Every run has a process of its own and leaves the check's process as it was. Nothing but tensors, numbers and texts comes back.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import tempfile
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch

from torchstone.conductor.experiments.against_one.comparing import first_difference
from torchstone.conductor.experiments.against_one.playing import Autocast, Player
from torchstone.conductor.experiments.against_one.tape import (
    CannotJoinError,
    Tape,
    load_tape,
    tape_name,
)
from torchstone.conductor.experiments.recording.run import Run
from torchstone.conductor.experiments.recording.session import Start, prepare, run_script
from torchstone.conductor.experiments.recording.training import EnoughError
from torchstone.conductor.probes.harvest.group import FileGroup
from torchstone.conductor.probes.harvest.precision import RunMode
from torchstone.conductor.probes.processes import answers_of
from torchstone.observe.training import TRAINING, StepBegins
from torchstone.observe.where import Where

_STEPS = 4
_TOLERANCE = 1e-4
"""Relative, float32: the same sums in another order differ by 1e-6 to 1e-5."""
_MOST_CALLS = 20
_DEPTH = 4
"""Of containers in containers that come back from a recorded call."""


class CannotTellError(Exception):
    """The run gave nothing that could be compared: the check is not decided."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One process of a program, up to its last optimizer step that was asked for."""

    losses: tuple[float, ...]
    """Of each backward pass."""
    rates: tuple[tuple[float, ...], ...]
    """Learning rates of each optimizer step, one for each of its groups."""
    gradients: tuple[dict[str, torch.Tensor], ...]
    """Right before each optimizer step, in float32, by the name of the parameter. Without a gradient: not there."""
    weights: dict[str, torch.Tensor]
    """Right before the first optimizer step."""
    returned: dict[str, tuple[torch.Tensor, ...]]
    """Tensors that the project's functions returned before the first step, by qualified name."""
    ended: str
    """Why the program ended by itself before it came that far; empty where it did not."""
    start: Start = field(repr=False)
    tape: Tape = field(repr=False)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a function of the project. Other things than tensors, numbers and texts are left out."""

    arguments: dict[str, Any]
    result: Any


def run(
    script: str, *arguments: str, steps: int = _STEPS, seed: int = 0, still: bool = True
) -> RunRecord:
    """A program of the project on one process; `still`: without dropout and autocast."""
    return _play(_start(script, arguments, seed), 1, steps, still)[0]


def run_ranks(
    count: int, script: str, *arguments: str, steps: int = 2, seed: int = 0, still: bool = True
) -> tuple[RunRecord, ...]:
    """The same program on several ranks, as torchrun starts it."""
    return _play(_start(script, arguments, seed), count, steps, still)


def join_ranks(
    ranks: Sequence[RunRecord], script: str = "", *arguments: str, seed: int = 0
) -> RunRecord:
    """The program on one process with everything that the ranks used: their weights, batches and random numbers.
    Without a script: the one that the ranks ran."""
    start = _start(script, arguments, seed) if script else ranks[0].start
    given = tuple(item.tape for item in ranks)
    return _play(start, 1, len(ranks[0].gradients), True, given)[0]


def record(
    script: str, function: str, *arguments: str, steps: int = _STEPS, seed: int = 0
) -> tuple[RecordedCall, ...]:
    """The first calls of a function of the project (`Net.forward`, `masked_mean`) while a program runs."""
    start = _start(script, arguments, seed)
    with tempfile.TemporaryDirectory(prefix="calls-") as folder:
        path = Path(folder, "calls.pt")
        work = functools.partial(_write_calls, start, function, steps, path)
        ((text, late),) = answers_of([work])
        _raise_if_lost(text, late, script)
        calls = torch.load(path, weights_only=True)
    if not calls:
        raise CannotTellError(f"{function} was not called while {script} ran")
    return tuple(RecordedCall(item["arguments"], item["result"]) for item in calls)


def compare(one: Any, other: Any, tolerance: float = _TOLERANCE) -> None:
    """Raise an AssertionError that names the first difference. Tensors are compared by their norm, numbers relatively;
    of two records losses, learning rates, gradients and weights are, and the first function that returned something else is named."""
    difference = next(_differences(one, other, tolerance, ""), "")
    if difference and isinstance(one, RunRecord) and isinstance(other, RunRecord):
        place = first_difference(one.tape, [other.tape])
        where = f"; the first function that returned something else: {place}" if place else ""
        raise AssertionError(f"{difference}{where}")
    if difference:
        raise AssertionError(difference)


def _start(script: str, arguments: Sequence[str], seed: int) -> Start:
    root = Path.cwd()
    if not (root / script).is_file():
        raise CannotTellError(f"{script} is not a file of the project")
    return Start(root, script, tuple(map(str, arguments)), seed)


def _play(
    start: Start, world: int, steps: int, still: bool, given: tuple[Tape, ...] = ()
) -> tuple[RunRecord, ...]:
    with tempfile.TemporaryDirectory(prefix="tapes-") as name:
        folder = Path(name)
        works = [
            functools.partial(_write_tape, start, rank, world, steps, still, given, folder)
            for rank in range(world)
        ]
        for text, late in answers_of(works):
            _raise_if_lost(text, late, start.script)
        tapes = [load_tape(folder / tape_name(rank, even=False)) for rank in range(world)]
    for tape in tapes:
        if not tape.gradients:
            why = tape.ended or "it ran to its end"
            printed = f"; it printed last: {tape.last_lines}" if tape.last_lines else ""
            raise CannotTellError(f"{start.script} made no optimizer step: {why}{printed}")
    return tuple(_record_of(start, tape) for tape in tapes)


def _raise_if_lost(text: str | None, late: bool, script: str) -> None:
    if text is None:
        raise CannotTellError(f"{script} {'took too long' if late else 'ended without a result'}")


def _write_tape(
    start: Start,
    rank: int,
    world: int,
    steps: int,
    still: bool,
    given: tuple[Tape, ...],
    folder: Path,
) -> str:
    exchange = str(folder / "store") if world > 1 else ""
    autocast: Autocast = "off" if still else "as written"
    player = Player(
        start,
        rank,
        world,
        exchange,
        given,
        steps=steps,
        dropout=not still,
        autocast=autocast,
    )
    tape = player.play()
    if tape.ended.startswith(CannotJoinError.__name__):
        tape.gradients.clear()
    tape.save(folder / tape_name(rank, even=False))
    return "ok"


def _record_of(start: Start, tape: Tape) -> RunRecord:
    returned: dict[str, list[torch.Tensor]] = {}
    for item in tape.returns:
        returned.setdefault(item.place.scope, []).append(item.value)
    return RunRecord(
        tuple(tape.losses),
        tuple(map(tuple, tape.rates)),
        tuple(
            {name: item for name, item in zip(tape.names, row, strict=False) if item is not None}
            for row in tape.gradients
        ),
        dict(zip(tape.names, tape.weights, strict=True)),
        {name: tuple(items) for name, items in returned.items()},
        "" if tape.ended == "time" else tape.ended,
        start,
        tape,
    )


def _write_calls(start: Start, function: str, steps: int, path: Path) -> str:
    run, places = Run(start.root, start.script), Where(start.root)
    lookups = prepare(start)
    kept: list[dict[str, Any]] = []
    waiting: dict[int, dict[str, Any]] = {}
    inside = f"{start.root}{os.sep}"
    count = [0]

    def see(frame: types.FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if event == "return" and id(frame) in waiting:
            kept.append({"arguments": waiting.pop(id(frame)), "result": _plain(value)})
        elif event == "call" and len(kept) + len(waiting) < _MOST_CALLS:
            name = code.co_qualname.replace("<locals>.", "")
            if code.co_filename.startswith(inside) and name == function:
                given = {key: _plain(item) for key, item in frame.f_locals.items()}
                waiting[id(frame)] = {k: item for k, item in given.items() if item is not None}

    def note_step(_: StepBegins) -> None:
        count[0] += 1
        if count[0] > steps:
            raise EnoughError

    TRAINING.subscribe(note_step, StepBegins)
    with RunMode():
        sys.setprofile(see)
        try:
            run_script(start, run, places, lookups)
        finally:
            sys.setprofile(None)
            FileGroup.tell_end()
    torch.save(kept, path)
    return "ok"


def _plain(value: Any, depth: int = _DEPTH) -> Any:
    """A copy of tensors, numbers, texts and containers of them; None for everything else."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if depth and isinstance(value, list | tuple):
        items = [_plain(item, depth - 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if depth and isinstance(value, Mapping):
        return {key: _plain(item, depth - 1) for key, item in value.items() if isinstance(key, str)}
    return None


def _differences(one: Any, other: Any, tolerance: float, where: str) -> Iterator[str]:
    at = f"{where}: " if where else ""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        yield from _tensor_difference(one, other, tolerance, at)
    elif is_dataclass(one) and type(one) is type(other):
        for item in fields(one):
            if item.name not in ("start", "tape", "returned", "ended"):
                left, right = getattr(one, item.name), getattr(other, item.name)
                yield from _differences(left, right, tolerance, _inside(where, item.name))
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        if alone := sorted(set(one) ^ set(other), key=str):
            yield f"{at}only one of the two has {', '.join(map(str, alone[:3]))}"
        for key in one:
            if key in other:
                yield from _differences(one[key], other[key], tolerance, _inside(where, str(key)))
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        for place, (left, right) in enumerate(zip(one, other, strict=False)):
            yield from _differences(left, right, tolerance, f"{where}[{place}]")
        if len(one) != len(other):
            yield f"{at}{len(one)} and {len(other)} of them"
    elif isinstance(one, int | float) and isinstance(other, int | float):
        same = math.isnan(one) and math.isnan(other)
        if not same and not math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance * 1e-3):
            yield f"{at}{one:.6g} and {other:.6g}"
    elif one != other:
        yield f"{at}{str(one)[:60]} and {str(other)[:60]}"


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _tensor_difference(
    one: torch.Tensor, other: torch.Tensor, tolerance: float, at: str
) -> Iterator[str]:
    if one.shape != other.shape:
        yield f"{at}shapes {tuple(one.shape)} and {tuple(other.shape)}"
        return
    left, right = one.detach().double(), other.detach().double()
    if not torch.equal(left.isfinite(), right.isfinite()):
        yield f"{at}not finite in one of the two"
        return
    left, right = left.nan_to_num(), right.nan_to_num()
    size = max(float(left.norm()), float(right.norm()))
    apart = float((left - right).norm())
    if apart > tolerance * size:
        yield f"{at}differ by {apart / size:.2g} of their norm"
