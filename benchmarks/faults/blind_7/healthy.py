"""Changes that belong to healthy training."""

from __future__ import annotations

import torch

from faults.scene import Scene, benign


@benign(
    "slow-weights-follow-the-fast",
    origin="Lookahead (Zhang and others, 2019): every fifth step the weights go half the way back",
)
def look_ahead(scene: Scene) -> None:
    slow = [p.detach().clone() for p in scene.model.parameters()]

    @torch.no_grad()
    def follow(scene: Scene) -> None:
        if scene.step % 5 == 4:
            for kept, parameter in zip(slow, scene.model.parameters(), strict=True):
                kept.lerp_(parameter, 0.5)
                parameter.copy_(kept)

    scene.after_step = follow


@benign(
    "trained-on-in-double-precision",
    origin="a usual check of whether a doubt is one of precision: the same run goes on in float64",
    models=("series", "images"),
)
def to_double(scene: Scene) -> None:
    scene.model.double()
    scene.optimizer.load_state_dict(scene.optimizer.state_dict())
    scene.transform = lambda x, y: (x.double(), y)


@benign(
    "batch-up-by-half-and-rate-by-its-root",
    origin="the square-root rule of scaling (Krizhevsky, 2014), when memory becomes free",
)
def scale_both(scene: Scene) -> None:
    scene.batch_size = 24
    for group in scene.optimizer.param_groups:
        group["lr"] *= 1.5**0.5


@benign(
    "clipping-taken-off",
    origin="clipping that no longer bites is removed; Adam does not depend on the scale",
    models=("language", "series"),
)
def unclip(scene: Scene) -> None:
    scene.clip = None


@benign(
    "gradients-centred-per-filter",
    origin="gradient centralisation (Yong and others, 2020), switched on during training",
    models=("images", "language"),
)
def centre(scene: Scene) -> None:
    def subtract_mean(scene: Scene) -> None:
        for parameter in scene.model.parameters():
            if parameter.grad is not None and parameter.ndim > 1:
                others = tuple(range(1, parameter.ndim))
                parameter.grad -= parameter.grad.mean(others, keepdim=True)

    scene.after_backward = subtract_mean


@benign(
    "decay-tripled",
    origin="weight decay raised for the second half of training, within its usual range",
    models=("language", "images"),
)
def decay_more(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["weight_decay"] *= 3
