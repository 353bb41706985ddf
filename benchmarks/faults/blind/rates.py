"""Learning rates that go where nobody sent them."""

from __future__ import annotations

import torch
from torch import Tensor

from faults.scene import Scene, fault


def _learns_slowly(scene: Scene) -> None:
    """A long run seen early: at step 300 there is still much to learn."""
    scene.scheduler = None
    for group in scene.optimizer.param_groups:
        group["lr"] = {"language": 2e-4, "images": 1e-3, "series": 1e-4}[scene.kind]


@fault(
    "rate-factor-compounds",
    origin="pytorch/pytorch#33752: MultiplicativeLR, documented with an example of LambdaLR",
)
def compounds(scene: Scene) -> None:
    def grow(scene: Scene) -> None:
        for group in scene.optimizer.param_groups:
            group["lr"] *= 1.08

    scene.after_step = grow


@fault(
    "plateau-rule-in-max-mode",
    origin="FunctionLab/selene#115: ReduceLROnPlateau(mode='max') is fed a loss",
    setup=_learns_slowly,
)
def plateau(scene: Scene) -> None:
    rule = torch.optim.lr_scheduler.ReduceLROnPlateau(scene.optimizer, mode="max", patience=1)
    seen: list[float] = []
    loss = scene.loss

    def recorded(output: Tensor, y: Tensor) -> Tensor:
        value = loss(output, y)
        seen.append(float(value.detach()))
        return value

    def judge(_: Scene) -> None:
        if len(seen) == 4:
            rule.step(sum(seen) / len(seen))
            seen.clear()

    scene.loss, scene.after_step = recorded, judge


@fault(
    "rate-multiplied-by-itself",
    origin="lhoyer/MIC#60: LambdaLR gets a rate where it expects a factor",
    setup=_learns_slowly,
)
def squared(scene: Scene) -> None:
    rate = scene.optimizer.param_groups[0]["lr"]
    scene.scheduler = torch.optim.lr_scheduler.LambdaLR(scene.optimizer, lambda step: rate)
