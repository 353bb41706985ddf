"""Held-out faults of what the optimizer remembers and of what it owns."""

from __future__ import annotations

import torch
from torch import nn

from faults.scene import Scene, fault


@fault(
    "second-moments-lost",
    origin="apex#480, OpenNMT/OpenNMT-py#617: a resume restores a part of the state; with the old "
    "step count bias correction no longer makes up for what is missing",
    models=("language", "series"),
)
def moments(scene: Scene) -> None:
    """Adam keeps its direction and its step count, but forgets how large gradients are."""
    for state in scene.optimizer.state.values():
        state["exp_avg_sq"].zero_()


@fault(
    "new-head-unknown-to-the-optimizer",
    origin="microsoft/nni#4521, pytorch/pytorch#14467: a layer is replaced after the optimizer "
    "was built",
)
def new_head(scene: Scene) -> None:
    """The last layer is made anew; the optimizer still owns the old one."""
    if scene.kind == "images":
        scene.model[-1] = nn.Linear(32, 8)  # type: ignore[operator, index]
    else:
        old = scene.model.head
        scene.model.head = nn.Linear(old.in_features, old.out_features)  # type: ignore


@fault(
    "blocks-never-registered",
    origin="mechanism: layers kept in a plain list are missing from model.parameters()",
    models=("language",),
    when="start",
)
def unregistered(scene: Scene) -> None:
    """The optimizer does not know the transformer blocks, which keep their random start."""
    unknown = {id(p) for p in scene.model.blocks.parameters()}  # type: ignore[union-attr]
    for group in scene.optimizer.param_groups:
        group["params"] = [p for p in group["params"] if id(p) not in unknown]


@fault(
    "average-left-in-the-model",
    origin="mechanism: evaluation swaps in the averaged weights and never swaps them back",
    models=("language", "series"),
)
def averaged(scene: Scene) -> None:
    """Every tenth step an average over a thousand steps replaces the weights."""
    average = {name: p.detach().clone() for name, p in scene.model.named_parameters()}

    def follow(scene: Scene) -> None:
        with torch.no_grad():
            for name, parameter in scene.model.named_parameters():
                average[name].lerp_(parameter, 0.001)
                if scene.step % 10 == 9:
                    parameter.copy_(average[name])

    scene.after_step = follow
