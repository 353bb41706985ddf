"""Held-out faults of the step size: rate, momentum and decay."""

from __future__ import annotations

import torch

from faults.scene import Scene, fault


@fault(
    "epoch-schedule-stepped-per-batch",
    origin="ivadomed/ivadomed#55: the epoch schedule was stepped in the batch loop",
    models=("language", "series"),
)
def per_batch(scene: Scene) -> None:
    """A decay of 0.9 that was meant for each epoch is applied after each batch."""
    scene.scheduler = torch.optim.lr_scheduler.ExponentialLR(scene.optimizer, 0.9)


@fault(
    "rate-scaled-for-absent-workers",
    origin="Goyal et al. 2017 (arXiv 1706.02677), linear scaling applied while the batch stays",
    models=("language", "images"),
)
def scaled(scene: Scene) -> None:
    """A restart multiplies the rate by eight workers, but one worker still feeds the batch."""
    for group in scene.optimizer.param_groups:
        group["lr"] *= 8


@fault(
    "momentum-with-one-nine-too-many",
    origin="mechanism: the effective rate of SGD is lr / (1 - momentum)",
    models=("images",),
)
def momentum(scene: Scene) -> None:
    """The momentum of 0.9 is typed as 0.99."""
    for group in scene.optimizer.param_groups:
        group["momentum"] = 0.99


@fault(
    "decay-not-scaled-by-rate",
    origin="Loshchilov and Hutter 2017 (arXiv 1711.05101): the decay of the paper is not "
    "multiplied by lr, that of torch.optim.AdamW is; a port confuses them",
    models=("language", "series"),
)
def decay(scene: Scene) -> None:
    """A decay of 0.01 shrinks the weights by one per cent at every step."""

    def shrink(scene: Scene) -> None:
        with torch.no_grad():
            for parameter in scene.model.parameters():
                parameter.mul_(1 - 0.01)

    scene.after_step = shrink
