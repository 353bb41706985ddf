"""Faults of reduced precision: scales, masters and cached casts."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from faults.scene import Scene, fault


def _scaled(scene: Scene) -> None:
    """A loss scale that stays where it is."""
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=4096.0, growth_interval=1_000_000)


def _divide_by_scale(scene: Scene) -> None:
    """What a training loop did before the scaler could do it."""
    for parameter in scene.model.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(scene.scaler.get_scale())


@fault(
    "divided-by-the-scale-twice",
    origin="mechanism: unscaling by hand stays in the loop when unscale_ is added before the clipping "
    "(the addition itself: milesial/Pytorch-UNet issue 468 and pull request 470)",
    models=("language", "images"),
    setup=_scaled,
)
def divided_twice(scene: Scene) -> None:
    """Gradients arrive at the optimizer smaller by the whole loss scale."""
    scene.after_backward = _divide_by_scale


@fault(
    "masters-from-before-the-checkpoint",
    origin="NVIDIA/apex pull request 42, NovaSky-AI/SkyRL pull request 2149: a checkpoint is loaded "
    "after the float32 masters were cloned, and the first step copies the old masters back",
    models=("language", "series"),
)
def old_masters(scene: Scene) -> None:
    """One step after the resume the weights are those of step 0, with moments of step 300."""
    with torch.random.fork_rng():
        masters = Scene(scene.kind, scene.seed).model.state_dict()

    def copy_back(scene: Scene) -> None:
        with torch.no_grad():
            for name, parameter in scene.model.named_parameters():
                parameter.copy_(masters[name])
        scene.after_step = None

    scene.after_step = copy_back


class _CachedCast:
    """The forward pass of a layer with a half-precision copy that is renewed too seldom."""

    def __init__(self, scene: Scene, layer: nn.Linear | nn.Conv2d) -> None:
        self.scene, self.layer = scene, layer
        self.copy = layer.weight.detach().half().float()

    def __call__(self, x: Tensor) -> Tensor:
        if self.scene.step % 25 == 0:
            self.copy = self.layer.weight.detach().half().float()
        # the value is the old copy's, and the gradient reaches the weight as ever
        weight = self.copy + self.layer.weight - self.layer.weight.detach()
        if isinstance(self.layer, nn.Conv2d):
            return F.conv2d(x, weight, self.layer.bias, self.layer.stride, self.layer.padding)
        return F.linear(x, weight, self.layer.bias)


@fault(
    "casts-cached-across-steps",
    origin="X-GenGroup/Flow-Factory pull request 186, NVIDIA/apex pull request 132: one autocast "
    "context around the whole loop serves casts of weights that have long moved on",
    models=("images",),
)
def cached_casts(scene: Scene) -> None:
    """Layers compute with weights of up to 25 steps ago, and gradients see no answer."""
    for layer in scene.model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            layer.forward = _CachedCast(scene, layer)
