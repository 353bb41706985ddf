"""Faults within one layer."""

import torch
from torch import nn

from faults.scene import Scene, fault


def _first_linear(scene: Scene) -> nn.Module:
    kinds = (nn.Linear, nn.Conv2d)
    return [m for m in scene.model.modules() if isinstance(m, kinds)][1]


@fault("layer-detached", origin="mechanism: .detach() or .data left in a forward")
def detached(scene: Scene) -> None:
    layer = _first_linear(scene)
    layer.register_forward_hook(lambda *call: call[-1].detach().requires_grad_())


@fault("layer-reset", origin="mechanism: reset_parameters called at evaluation",
       models=("language", "images", "series"))  # fmt: skip
def reset(scene: Scene) -> None:
    _first_linear(scene).reset_parameters()  # type: ignore[operator]


@fault("dead-units", origin="mechanism: a bias far below zero before a ReLU", models=("images",))
def dead(scene: Scene) -> None:
    norms = [m for m in scene.model.modules() if isinstance(m, nn.BatchNorm2d)]
    with torch.no_grad():
        norms[1].bias.fill_(-100.0)


# not for images: batch norm after the layer takes the factor out again, and nothing is wrong
@fault("layer-output-times-50", origin="mechanism: a missing 1/sqrt(d)",
       models=("language", "series"))  # fmt: skip
def too_loud(scene: Scene) -> None:
    _first_linear(scene).register_forward_hook(lambda *call: call[-1] * 50)


@fault("layer-frozen", origin="mechanism: requires_grad_(False) that reaches too far")
def frozen(scene: Scene) -> None:
    for p in _first_linear(scene).parameters():
        p.requires_grad_(False)
        p.grad = None
