"""Loss scales that are not taken out again, and numbers that a mask does not stop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from faults.scene import Scene, fault


def _scaled(scene: Scene) -> None:
    """A loss scale of 1024; the picture recipe does not clip."""
    scene.clip = None if scene.kind == "images" else scene.clip
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=10_000)


class _Bypassed(torch.amp.GradScaler):
    """Scales the loss, but the program steps the optimizer itself."""

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        pass

    def step(self, optimizer: torch.optim.Optimizer, *_: Any, **__: Any) -> None:
        optimizer.step()

    def update(self, new_scale: Any = None) -> None:
        pass


@fault(
    "stepped-past-the-scaler",
    origin="github.com/IAHispano/Applio/pull/860: the loss is scaled, but optimizer.step() is "
    "called directly, past the scaler, on gradients that nothing has divided again",
    models=("images", "series"),
    setup=_scaled,
)
def past_the_scaler(scene: Scene) -> None:
    scene.scaler = _Bypassed("cpu", init_scale=1024.0)


def _with_gaps(scene: Scene) -> None:
    """One target in fifty is missing; the error is masked before it is squared."""
    generator = torch.Generator().manual_seed(54 + scene.seed)

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x, y.masked_fill(torch.rand(y.shape, generator=generator) < 0.02, torch.nan)

    def loss(value: Tensor, y: Tensor) -> Tensor:
        there = ~torch.isnan(y)
        return (value[there] - y[there]).square().mean()

    scene.transform, scene.loss = transform, loss


@fault(
    "gaps-masked-after-the-square",
    origin="github.com/pytorch/pytorch/issues/64305, 68425 and 89543: the loss drops the missing "
    "targets, but 0 times NaN reaches the gradients",
    models=("series",),
    setup=_with_gaps,
)
def masked_after(scene: Scene) -> None:
    def loss(value: Tensor, y: Tensor) -> Tensor:
        square = (value - y).square()
        return torch.where(torch.isnan(square), 0.0, square).sum() / (~torch.isnan(y)).sum()

    scene.loss = loss
