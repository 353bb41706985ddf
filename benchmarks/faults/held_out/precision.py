"""Held-out faults of number formats and of loss scaling."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from faults.scene import Scene, fault


def _scaled(scene: Scene) -> None:
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)


@fault(
    "clipped-while-still-scaled",
    origin="Lightning-AI/pytorch-lightning#9599, milesial/Pytorch-UNet#468: clip before unscale_",
    setup=_scaled,
)
def clip_scaled(scene: Scene) -> None:
    """Clipping scaled gradients to norm one leaves almost nothing after unscaling."""
    scene.after_backward = lambda scene: (
        nn.utils.clip_grad_norm_(scene.model.parameters(), 1.0) and None
    )


@fault(
    "every-step-skipped-by-the-scaler",
    origin="PaddlePaddle/Paddle#67895, dbolya/yolact#359: the scale falls for ever; here the "
    "square root of a zero distance has no finite gradient while the loss stays finite",
    models=("language", "series"),
    setup=_scaled,
)
def skipped(scene: Scene) -> None:
    """A new penalty has NaN gradients on its diagonal, so the scaler skips every step in silence."""
    loss = scene.loss

    def spread(value: Tensor, y: Tensor) -> Tensor:
        mean = value.float().mean(1)
        distance = (mean[:, None] - mean[None]).pow(2).sum(-1).sqrt()
        return loss(value, y) - 1e-4 * distance.mean()

    scene.loss = spread


@fault(
    "weights-and-moments-in-bfloat16",
    origin="meta-pytorch/torchtune#2254, workofart/ml-by-hand#85: updates are rounded away",
    models=("language",),
)
def low_weights(scene: Scene) -> None:
    """After every step weights and moments are stored in bfloat16, with no float32 copy."""

    def store(scene: Scene) -> None:
        with torch.no_grad():
            for parameter in scene.model.parameters():
                parameter.copy_(parameter.bfloat16())
                for name, value in scene.optimizer.state[parameter].items():
                    if isinstance(value, Tensor) and name != "step":
                        value.copy_(value.bfloat16())

    scene.after_step = store
