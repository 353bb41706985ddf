"""Several micro-batches give the gradient of one batch that holds all their samples.

The program runs twice up to its first update: once as it is, once with batches that are as large as a group of
micro-batches. The gradient of the large batch is a weighted sum of those of the micro-batches wherever samples do not
depend on each other; with these weights the micro-batches must have entered the update.
"""

from __future__ import annotations

import functools
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
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.precision import RunMode
from torchstone.conductor.probes.processes import answers_of
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.observe.training import (
    TRAINING,
    BackwardEnds,
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
RULES = (UNEVEN,)
MOST_BATCHES = 16
"""Micro-batches of one update that are joined: a batch of more may not fit."""
_MOST_ELEMENTS = 64 << 20
"""Of all gradients that are kept, 256 MiB."""
_SPAN = 0.02
"""Relative: what is left of the large batch's gradient. More, and the samples depend on each other."""
_APART = 0.01
"""Sine of the angle between both gradients: 1e-4 at most where nothing but the order of sums differs."""


def examine_accumulation(start: Start, count: int, place: Place) -> Examined:
    """`count` backward passes at `place` precede the first update."""
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


@dataclass(slots=True)
class _Player:
    """Runs the program up to its first update, or its first backward pass where batches are joined."""

    joined: int
    parameters: list[torch.Tensor] = field(default_factory=list)
    optimizers: int = 0
    sums: list[torch.Tensor] = field(default_factory=list)
    """All gradients after each backward pass."""

    def install(self) -> None:
        TRAINING.subscribe(self._optimizer_made, OptimizerMade)
        TRAINING.subscribe(self._keep, BackwardEnds)
        TRAINING.subscribe(self._stop, StepBegins)
        if self.joined > 1:
            TRAINING.subscribe(self._join_batches, LoaderMade)

    def _optimizer_made(self, event: OptimizerMade) -> None:
        self.optimizers += 1
        groups = event.optimizer.param_groups
        self.parameters += [item for group in groups for item in group["params"]]

    def _stop(self, _: StepBegins) -> None:
        raise EnoughError

    def _join_batches(self, event: LoaderMade) -> None:
        sampler = event.loader.batch_sampler
        if type(sampler) is BatchSampler:
            sampler.batch_size *= self.joined

    def _keep(self, _: BackwardEnds) -> None:
        elements = sum(item.numel() for item in self.parameters)
        if self.optimizers != 1 or elements * (len(self.sums) + 1) > _MOST_ELEMENTS:
            raise EnoughError
        self.sums.append(
            torch.cat(
                [
                    torch.zeros(item.numel())
                    if item.grad is None or item.grad.is_sparse
                    else item.grad.detach().float().flatten()
                    for item in self.parameters
                ]
            )
        )
        if self.joined > 1 or len(self.sums) > MOST_BATCHES:
            raise EnoughError


def _write(start: Start, joined: int, path: Path) -> str:
    """The gradient that each backward pass added, as a table of float32."""
    run, places = Run(start.root, start.script), Where(start.root)
    lookups = prepare(start)
    switch_dropout_off()
    switch_autocast_off()
    use_running_statistics()
    player = _Player(joined)
    player.install()
    with RunMode():
        run_script(start, run, places, lookups)
    if run.ended != "time" or not player.sums:
        return ""
    sums = torch.stack(player.sums)
    before = torch.cat([torch.zeros_like(sums[:1]), sums[:-1]])
    torch.save(sums - before, path)
    return "ok"


def _read(path: Path) -> torch.Tensor | None:
    """Only tensors are read: the file was written by code of the project."""
    if not path.is_file():
        return None
    found = torch.load(path, weights_only=True)
    return found if isinstance(found, torch.Tensor) and found.dim() == 2 else None
