"""Layers that start or pass on something else than was meant."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "linear-layers-drawn-at-unit-deviation",
    origin="pytorch/pytorch#3121: weights drawn with normal_(0, 1) are too large, and it took many "
    "hours to find out why the net did not train",
    models=("language",),
    when="start",
)
def drawn_at_unit_deviation(scene: Scene) -> None:
    for module in scene.model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight)


@fault(
    "in-place-activation-eats-the-residual",
    origin="rosinality/vq-vae-2-pytorch#60 and iduta/iresnet#2: the branch opens with "
    "ReLU(inplace=True), which also rectifies the input that the skip connection adds back",
    models=("language",),
)
def activation_eats_the_residual(scene: Scene) -> None:
    def rectify(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Tensor]:
        return (F.relu(inputs[0], inplace=True),)

    for block in scene.model.blocks:
        block.norm2.register_forward_pre_hook(rectify)
