"""One batch, given again and again, is learned: its loss falls.

This is a pointer, never proof of a fault: a learning rate that is still warming up, or targets that are drawn anew, keep a
loss where it is. Programs whose loss falls by itself, or that train several networks against each other, are not run again.
"""

from __future__ import annotations

import functools
import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from torchstone.conductor.experiments.recording.noise import switch_dropout_off
from torchstone.conductor.experiments.recording.run import Run
from torchstone.conductor.experiments.recording.session import Start, prepare, run_script
from torchstone.conductor.experiments.recording.training import EnoughError
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, FirstRun
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.precision import RunMode
from torchstone.conductor.probes.processes import answers_of
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.codec import from_data, to_data
from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.observe.training import TRAINING, BackwardBegins, OptimizerMade, StepBegins
from torchstone.observe.where import Where

STAYS = ProbeRule(
    "EX124",
    "repeated-batch-not-learned",
    Severity.LOW,
    "wrong result",
    Text(
        "the loss does not fall although every step sees the same batch",
        "每一步都使用同一批次，损失却不下降",
    ),
    Text(
        "a network that cannot learn one batch by heart will not learn the data: targets, loss and update do not belong together",
        "连一个批次都记不住的网络学不会整个数据集：目标、损失与更新之间不一致",
    ),
    Text(
        "check the sign of the loss, what the targets are compared with, and whether the updates reach the network",
        "检查损失的符号、与目标比较的对象，以及更新是否作用于该网络",
    ),
)
RULES = (STAYS,)
_STEPS = 80
_FEWEST = 30
"""Steps below which a loss that stays says nothing."""
_CPU_SECONDS = 8.0
_ENDS = 5
"""Losses at each end that are averaged."""
_FALLEN = 0.97
"""Of the first losses: three percent in thirty steps is less than any working rate brings on one batch."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """What came of the run."""

    losses: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    optimizers: int = 0
    draws: bool = False
    """The project draws random numbers in its steps: its loss is another one each time."""


def examine(start: Start, first: FirstRun) -> Examined:
    """Only where one network is trained and the loss did not fall by itself."""
    if len(first.losses) < 2 or not all(map(math.isfinite, first.losses)):
        return NOTHING_TO_LOOK_AT
    if first.backwards >= _FEWEST and _falls(first.losses):
        return Examined(decided=True)
    ((text, _),) = answers_of([functools.partial(_written, start)])
    if text is None:
        return NOTHING_TO_LOOK_AT
    return _judge(from_data(Repeated, json.loads(text), "repeated"), first)


def _judge(seen: Repeated, first: FirstRun) -> Examined:
    rising = seen.rates and seen.rates[-1] > 2 * seen.rates[0]
    if seen.optimizers != 1 or seen.draws or rising or len(seen.losses) < _FEWEST:
        return NOTHING_TO_LOOK_AT
    if _falls(seen.losses) or not all(map(math.isfinite, seen.losses)):
        return Examined(decided=True)  # a loss that is not finite has a relation of its own
    begin, end = _ends(seen.losses)
    shown = Shown(
        STAYS,
        first.loss_at,
        Text(
            "with one batch repeated {count} times the loss goes from {begin} to {end}",
            "同一批次重复 {count} 次，损失从 {begin} 变为 {end}",
        ),
        {"count": str(len(seen.losses)), "begin": f"{begin:.4g}", "end": f"{end:.4g}"},
        (number("loss at the end", "最后的损失", end, "", IN_THE_RUN),),
    )
    return Examined((shown,), decided=True)


def _ends(losses: Sequence[float]) -> tuple[float, float]:
    return statistics.fmean(losses[:_ENDS]), statistics.fmean(losses[-_ENDS:])


def _falls(losses: Sequence[float]) -> bool:
    begin, end = _ends(losses)
    return end < begin - (1 - _FALLEN) * abs(begin)


def _written(start: Start) -> str:
    return json.dumps(to_data(_repeat(start)))


def _repeat(start: Start) -> Repeated:
    run, places = Run(start.root, start.script), Where(start.root)
    losses: list[float] = []
    rates: list[float] = []
    optimizers: list[int] = []
    states: list[torch.Tensor] = []
    lookups = prepare(start)
    switch_dropout_off()
    until = time.process_time() + _CPU_SECONDS

    def note_loss(event: BackwardBegins) -> None:
        if isinstance(event.roots, torch.Tensor) and event.roots.numel() == 1:
            losses.append(float(event.roots.detach()))

    def note_step(event: StepBegins) -> None:
        rates.append(float(event.optimizer.param_groups[0].get("lr", math.nan)))
        states.append(torch.get_rng_state())
        if len(rates) >= _STEPS or time.process_time() > until:
            raise EnoughError

    TRAINING.subscribe(note_loss, BackwardBegins)
    TRAINING.subscribe(lambda event: optimizers.append(id(event.optimizer)), OptimizerMade)
    TRAINING.subscribe(note_step, StepBegins)
    _repeat_first_batches()
    with RunMode():
        run_script(start, run, places, lookups)
    draws = any(not torch.equal(one, states[0]) for one in states[1:])
    return Repeated(tuple(losses), tuple(rates), len(optimizers), draws)


def _repeat_first_batches() -> None:
    """Every loader gives its first batch for as long as it would give batches, without drawing again."""
    iterate = DataLoader.__iter__
    kept: dict[tuple[int, Any], tuple[Any, Any]] = {}

    def repeated(loader: Any) -> Iterator[Any]:
        key = id(loader.dataset), loader.batch_size  # a loader may be made anew for each epoch
        if key not in kept:
            batches = iterate(loader)
            try:
                kept[key] = loader.dataset, next(iter(batches))
            except StopIteration:
                return
        for _ in range(_length(loader)):
            yield kept[key][1]

    DataLoader.__iter__ = repeated  # type: ignore[method-assign, assignment]


def _length(loader: Any) -> int:
    try:
        return len(loader)
    except TypeError:  # an iterable data set
        return _STEPS
