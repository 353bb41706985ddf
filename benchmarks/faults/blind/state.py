"""Optimizer state that does not belong to the step it is used in."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from faults.scene import Scene, fault


def _learns_slowly(scene: Scene) -> None:
    """A long run seen early: at step 300 there is still much to learn."""
    scene.scheduler = None
    for group in scene.optimizer.param_groups:
        group["lr"] = {"language": 2e-4, "series": 1e-4}[scene.kind]


@fault(
    "step-counter-restarts",
    origin="deepspeedai/DeepSpeed#564: Adam's moments are restored, its step counter is not",
    models=("language", "series"),
    setup=_learns_slowly,
)
def counter(scene: Scene) -> None:
    for state in scene.optimizer.state.values():
        state["step"].zero_()


def _keeps_the_maximum(scene: Scene) -> None:
    scene.optimizer = torch.optim.Adam(scene.model.parameters(), lr=1e-3, amsgrad=True)
    scene.scheduler = None
    scene.clip = None


@fault(
    "amsgrad-remembers-one-spike",
    origin="AMSGrad (arXiv 1904.09237) never forgets the largest second moment it has seen",
    models=("language", "series"),
    setup=_keeps_the_maximum,
)
def spike(scene: Scene) -> None:
    start = scene.step

    def once(scene: Scene) -> None:
        if scene.step == start:
            for parameter in scene.model.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(1e4)

    scene.after_backward = once


@fault(
    "gradients-up-to-sixteen-steps-old",
    origin="staleness of asynchronous SGD (arXiv 1511.05950), without a smaller rate",
    models=("language", "images"),
)
def stale(scene: Scene) -> None:
    history: list[list[Tensor]] = []

    def delay(scene: Scene) -> None:
        gradients = [p.grad for p in scene.model.parameters() if p.grad is not None]
        history.append([gradient.clone() for gradient in gradients])
        now = len(history) - 1
        for gradient, old in zip(gradients, history[max(now - 16, now // 2)], strict=True):
            gradient.copy_(old)

    scene.after_backward = delay


@fault(
    "best-weights-reloaded-each-time",
    origin="mechanism: 'better' compared with the wrong sign, so the old best always wins",
    models=("language",),
)
def reload(scene: Scene) -> None:
    best = copy.deepcopy(scene.model.state_dict())
    start = scene.step

    def restore(scene: Scene) -> None:
        if (scene.step - start) % 10 == 9:
            scene.model.load_state_dict(best)

    scene.after_step = restore
