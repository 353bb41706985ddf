"""Held-out faults of what the optimizer remembers and of what it owns."""

from __future__ import annotations

import copy
from collections import defaultdict

import torch
from torch import nn

from faults.scene import Scene, fault


@fault(
    "moments-lost-but-step-kept",
    origin="apex#480, OpenNMT/OpenNMT-py#617: a resume wipes moments; with the old step count "
    "bias correction no longer makes up for it",
    models=("language", "series"),
)
def moments(scene: Scene) -> None:
    """Adam starts from zero moments without the correction that zero moments need."""
    for state in scene.optimizer.state.values():
        state["exp_avg"].zero_()
        state["exp_avg_sq"].zero_()


@fault(
    "moments-of-another-parameter",
    origin="Lightning-AI/pytorch-lightning#17025: state is restored by position after the order "
    "of layers has changed",
    models=("language", "series"),
)
def permuted(scene: Scene) -> None:
    """Parameters of equal shape have swapped their moments."""
    groups = defaultdict(list)
    for parameter in scene.model.parameters():
        groups[parameter.shape].append(parameter)
    for same in groups.values():
        states = [copy.deepcopy(scene.optimizer.state[p]) for p in same]
        for parameter, state in zip(same, states[1:] + states[:1], strict=True):
            scene.optimizer.state[parameter] = state


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
