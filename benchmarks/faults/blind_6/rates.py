"""Learning rates that go astray because a schedule counts in another unit than its caller."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from faults.scene import Scene, fault


class _Every:
    """A schedule that moves once in so many calls."""

    def __init__(self, inner: Any, calls: int) -> None:
        self.inner, self.calls, self.called = inner, calls, 0

    def step(self) -> None:
        self.called += 1
        if self.called % self.calls == 0:
            self.inner.step()


class _Times:
    """A schedule that moves so many times in one call."""

    def __init__(self, inner: Any, times: int) -> None:
        self.inner, self.times = inner, times

    def step(self) -> None:
        for _ in range(self.times):
            self.inner.step()


@fault(
    "warm-up-in-batches-stepped-per-epoch",
    origin="galilai-group/stable-worldmodel#280: the horizons of warm-up and decay are counted in "
    "batches but the schedule is stepped once an epoch, so the run never leaves its warm-up",
    models=("language", "series"),
    when="start",
)
def warm_up_in_batches(scene: Scene) -> None:
    if scene.scheduler is None:
        scene.scheduler = torch.optim.lr_scheduler.LinearLR(scene.optimizer, 0.02, total_iters=50)
    scene.scheduler = _Every(scene.scheduler, 400)


@fault(
    "plateau-judged-on-every-batch",
    origin="ivadomed/ivadomed#55: the schedule is stepped in the batch loop instead of the epoch "
    "loop; pytorch/pytorch#30873: a value above the best ever seen counts as a plateau, so the "
    "rate is cut again and again",
    models=("images",),
    when="start",
)
def plateau_on_every_batch(scene: Scene) -> None:
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(scene.optimizer)
    criterion = scene.loss
    seen = [0.0]

    def loss(output: Tensor, y: Tensor) -> Tensor:
        value = criterion(output, y)
        seen[0] = float(value.detach())
        return value

    class OnBatch:
        def step(self) -> None:
            plateau.step(seen[0])

    scene.loss = loss
    scene.scheduler = OnBatch()


@fault(
    "schedule-stepped-once-per-process",
    origin="Lightricks/LTX-Video-Trainer#67 and ContextualAI/HALOs#33: the launcher steps the "
    "schedule once for each process, so the cosine is through too early and then climbs again",
    models=("language",),
)
def stepped_once_per_process(scene: Scene) -> None:
    scene.scheduler = _Times(scene.scheduler, 64)
