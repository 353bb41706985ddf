"""Several micro-batches give the gradient of one batch that holds all their samples.

The program runs twice up to its first update: once as it is, once with batches that are as large as a group of
micro-batches. The gradient of the large batch is a weighted sum of those of the micro-batches wherever samples do not
depend on each other; with these weights the micro-batches must have entered the update.
"""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.utils.data import BatchSampler

from torchstone.conductor.experiments.recording.noise import (
    switch_autocast_off,
    switch_dropout_off,
    use_running_statistics,
)
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
from torchstone.core.place import NOWHERE, Place
from torchstone.core.text import Text
from torchstone.observe.training import (
    TRAINING,
    BackwardEnds,
    GradientsCleared,
    LoaderMade,
    OptimizerMade,
    StepBegins,
)
from torchstone.observe.where import Where

UNEVEN = ProbeRule(
    "EX119",
    "accumulation-weighs-unevenly",
    Severity.HIGH,
    "wrong result",
    Text(
        "micro-batches enter an update with other weights than their samples have in one large batch",
        "各微批次进入一次更新的权重，与其样本在一个大批次中的权重不同",
    ),
    Text(
        "accumulation changes what is optimised: a mean of means gives a micro-batch with few counted elements as much "
        "weight as one with many",
        "梯度累积改变了优化目标：对均值再求平均，使计入元素少的微批次与多的微批次权重相同",
    ),
    Text(
        "divide each micro-batch's sum by the count over the whole group",
        "将每个微批次的总和除以整组的计数",
    ),
)
CLEARED = ProbeRule(
    "EX122",
    "gradients-cleared-between-passes",
    Severity.HIGH,
    "wrong result",
    Text(
        "gradients are cleared between the backward passes of one update",
        "一次更新的多次反向传播之间清空了梯度",
    ),
    Text(
        "only the passes after the last clearing enter the update: the other micro-batches are computed and thrown away",
        "只有最后一次清空之后的反向传播进入更新：其余微批次计算后被丢弃",
    ),
    Text(
        "clear the gradients once per update, after step()", "每次更新只在 step() 之后清空一次梯度"
    ),
)
RULES = (UNEVEN, CLEARED)
MOST_BATCHES = 16
"""Micro-batches of one update that are joined: a batch of more may not fit."""
_MOST_ELEMENTS = 64 << 20
"""Of all gradients that are kept, 256 MiB."""
_SPAN = 0.02
"""Relative: what is left of the large batch's gradient. More, and the samples depend on each other."""
_APART = 0.01
"""Sine of the angle between both gradients: 1e-4 at most where nothing but the order of sums differs."""
_PARALLEL = 1e-4
"""One minus the cosine: clipping and scaling change the length of a gradient and nothing else."""


def examine(start: Start, first: FirstRun) -> Examined:
    """As many backward passes as the first run made on one line before its first update."""
    count, place = first.accumulated, first.accumulated_at
    if not 2 <= count <= MOST_BATCHES:
        return NOTHING_TO_LOOK_AT
    with tempfile.TemporaryDirectory(prefix="accumulation-") as name:
        folder = Path(name)
        works = [
            functools.partial(_write, start, 1, folder / "parts"),
            functools.partial(_write, start, count, folder / "whole"),
        ]
        answers_of(works)
        parts, whole = _read(folder / "parts"), _read(folder / "whole")
        cleared = _read_clearing(folder / "parts.json")
    if cleared is not None and parts is not None and len(parts) == count:
        return _judge_clearing(cleared, count)
    if parts is None or whole is None or len(parts) != count or parts.shape[1:] != whole.shape[1:]:
        return NOTHING_TO_LOOK_AT
    return _compare(parts.double(), whole[0].double(), place)


def _compare(parts: torch.Tensor, whole: torch.Tensor, place: Place) -> Examined:
    size = float(whole.norm())
    if not size or not bool(torch.isfinite(parts).all() and torch.isfinite(whole).all()):
        return NOTHING_TO_LOOK_AT
    if not float(parts.sum(0).norm()):
        return NOTHING_TO_LOOK_AT
    weights = torch.linalg.lstsq(parts.T, whole[:, None]).solution[:, 0]
    rest = float((parts.T @ weights - whole).norm()) / size
    if rest > _SPAN or float(weights.min()) <= 0:
        return NOTHING_TO_LOOK_AT
    total = parts.sum(0)
    cosine = float(total @ whole) / (float(total.norm()) * size)
    apart = max(1 - cosine * cosine, 0.0) ** 0.5
    if apart <= _APART:
        return Examined(decided=True)
    shares = [float(item) / float(weights.sum()) for item in weights]
    high, low = max(shares), min(shares)
    count = len(shares)
    return Examined(
        (
            Shown(
                UNEVEN,
                place,
                Text(
                    "for the gradient of one batch of the same samples, the {count} micro-batches of an update would have "
                    "to count {low} to {high} of what they give now, not {even} each",
                    "要得到同样样本的一个批次的梯度，一次更新中的 {count} 个微批次应按其现有贡献的 {low} 至 {high} 计入，而不是各占 {even}",
                ),
                {
                    "count": str(count),
                    "low": f"{low:.0%}",
                    "high": f"{high:.0%}",
                    "even": f"{1 / count:.0%}",
                },
                (
                    number("largest weight", "最大权重", high * 100, "%", IN_THE_RUN),
                    number("smallest weight", "最小权重", low * 100, "%", IN_THE_RUN),
                    number(
                        "sine of the angle between both gradients",
                        "两个梯度夹角的正弦",
                        apart,
                        "",
                        IN_THE_RUN,
                    ),
                ),
                severity=None if high - low > 0.5 / count else Severity.MEDIUM,
            ),
        ),
        decided=True,
    )


@dataclass(frozen=True, slots=True)
class Clearing:
    """Gradients that were cleared before the update that they were computed for."""

    place: Place
    lost: int
    """Backward passes before the last clearing."""
    enters: bool
    """The update gets what came after it, and nothing else; the weights were the same in all passes."""


def _judge_clearing(cleared: Clearing, count: int) -> Examined:
    if not cleared.enters or not cleared.place:
        return NOTHING_TO_LOOK_AT  # the program keeps gradients of its own, or looks around with other weights
    said = Text(
        "{lost} of the {count} backward passes before the update are thrown away: the gradients are cleared here",
        "更新之前的 {count} 次反向传播中有 {lost} 次被丢弃：梯度在此处被清空",
    )
    evidence = number("passes thrown away", "被丢弃的反向传播", cleared.lost, "", IN_THE_RUN)
    given = {"lost": str(cleared.lost), "count": str(count)}
    shown = Shown(CLEARED, cleared.place, said, given, (evidence,))
    return Examined((shown,), decided=True)


@dataclass(slots=True)
class _Player:
    """Runs the program up to its first update, or its first backward pass where batches are joined."""

    joined: int
    places: Where
    parameters: list[torch.Tensor] = field(default_factory=list)
    optimizers: int = 0
    sums: list[torch.Tensor] = field(default_factory=list)
    """All gradients after each backward pass."""
    cleared_at: Place = NOWHERE
    kept_from: int = 0
    """Passes before the last clearing."""
    weights: list[float] = field(default_factory=list)
    """The sum of all weights at each pass: writing through `.data` changes no version."""
    entering: torch.Tensor | None = None
    """All gradients when the update begins."""

    def install(self) -> None:
        TRAINING.subscribe(self._optimizer_made, OptimizerMade)
        TRAINING.subscribe(self._keep, BackwardEnds)
        TRAINING.subscribe(self._stop, StepBegins)
        TRAINING.subscribe(self._note_clearing, GradientsCleared)
        if self.joined > 1:
            TRAINING.subscribe(self._join_batches, LoaderMade)

    def _optimizer_made(self, event: OptimizerMade) -> None:
        self.optimizers += 1
        groups = event.optimizer.param_groups
        self.parameters += [item for group in groups for item in group["params"]]

    def _stop(self, _: StepBegins) -> None:
        self.entering = self._gradients()
        raise EnoughError

    def _note_clearing(self, _: GradientsCleared) -> None:
        if self.sums:
            self.cleared_at, self.kept_from = self.places.here(), len(self.sums)

    def clearing(self) -> Clearing | None:
        """Of passes that gave something; None where all enter the update."""
        if not 0 < self.kept_from < len(self.sums) or self.entering is None:
            return None
        one, other = self.sums[-1].double(), self.entering.double()
        size = float(one.norm() * other.norm())
        parallel = size > 0 and float(one @ other) / size > 1 - _PARALLEL
        given = all(bool(item.any()) for item in self.sums[: self.kept_from])
        return Clearing(
            self.cleared_at, self.kept_from, parallel and given and len(set(self.weights)) == 1
        )

    def added(self) -> torch.Tensor:
        """What each pass added."""
        sums = torch.stack(self.sums)
        before = torch.cat([torch.zeros_like(sums[:1]), sums[:-1]])
        if self.kept_from < len(before):
            before[self.kept_from] = 0
        return sums - before

    def _gradients(self) -> torch.Tensor:
        return torch.cat(
            [
                torch.zeros(item.numel())
                if item.grad is None or item.grad.is_sparse
                else item.grad.detach().float().flatten()
                for item in self.parameters
            ]
        )

    def _join_batches(self, event: LoaderMade) -> None:
        sampler = event.loader.batch_sampler
        if type(sampler) is BatchSampler:
            sampler.batch_size *= self.joined

    def _keep(self, _: BackwardEnds) -> None:
        elements = sum(item.numel() for item in self.parameters)
        if self.optimizers != 1 or elements * (len(self.sums) + 1) > _MOST_ELEMENTS:
            raise EnoughError
        self.sums.append(self._gradients())
        self.weights.append(sum(float(item.detach().double().sum()) for item in self.parameters))
        if self.joined > 1 or len(self.sums) > MOST_BATCHES:
            raise EnoughError


def _write(start: Start, joined: int, path: Path) -> str:
    """The gradient that each backward pass added, as a table of float32."""
    run, places = Run(start.root, start.script), Where(start.root)
    lookups = prepare(start)
    switch_dropout_off()
    switch_autocast_off()
    use_running_statistics()
    player = _Player(joined, places)
    player.install()
    with RunMode():
        run_script(start, run, places, lookups)
    if run.ended != "time" or not player.sums:
        return ""
    torch.save(player.added(), path)
    if cleared := player.clearing():
        path.with_suffix(".json").write_text(json.dumps(to_data(cleared)), "utf-8")
    return "ok"


def _read_clearing(path: Path) -> Clearing | None:
    if not path.is_file():
        return None
    return from_data(Clearing, json.loads(path.read_text("utf-8")), "clearing")


def _read(path: Path) -> torch.Tensor | None:
    """Only tensors are read: the file was written by code of the project."""
    if not path.is_file():
        return None
    found = torch.load(path, weights_only=True)
    return found if isinstance(found, torch.Tensor) and found.dim() == 2 else None
