"""The learning rate is not what its owner believes."""

from __future__ import annotations

from torch.optim.lr_scheduler import ExponentialLR, MultiStepLR

from faults.blind_8.pace import unhurried
from faults.scene import Scene, fault


def _set_rate(scene: Scene, factor: float) -> None:
    scene.scheduler = None
    for group in scene.optimizer.param_groups:
        group["lr"] *= factor


@fault(
    "rate-of-a-bigger-machine",
    origin="facebookresearch/maskrcnn-benchmark#295: the rate of a larger batch kept, loss "
    "diverges",
)
def rate_too_large(scene: Scene) -> None:
    _set_rate(scene, 30.0)


def _decayed(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["lr"] *= 5
    scene.scheduler = MultiStepLR(scene.optimizer, [180, 240], gamma=0.1)


@fault(
    "schedule-rebuilt-on-resume",
    origin="victoresque/pytorch-template#68, starVLA/starVLA#204: the schedule starts again at "
    "its base rate",
    models=("images", "series"),
    setup=_decayed,
)
def schedule_rebuilt(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["lr"] = group["initial_lr"]
    scene.scheduler = MultiStepLR(scene.optimizer, [18000, 24000], gamma=0.1)


@fault(
    "milestones-applied-at-once",
    origin="pytorch/pytorch#31828: MultiStepLR.step(epoch) applied every milestone on the first "
    "call",
    models=("images", "series"),
    setup=unhurried,
)
def milestones_at_once(scene: Scene) -> None:
    _set_rate(scene, 1e-3)


@fault(
    "schedule-stepped-per-batch",
    origin="ivadomed/ivadomed#55: a decay meant for every epoch is applied after every batch",
    models=("language", "images"),
    setup=unhurried,
)
def stepped_per_batch(scene: Scene) -> None:
    scene.scheduler = ExponentialLR(scene.optimizer, gamma=0.9)
