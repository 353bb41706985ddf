"""What goes wrong between ranks; the scene's model is wrapped in DDP, its batches differ by rank."""

from __future__ import annotations

import math

import torch
import torch.distributed as dist

from faults.scene import Scene, fault

MODELS = ("series", "images")


@fault("rank-holds-other-weights", models=MODELS, origin=(
    "mechanism: a layer is initialised again on one rank after DDP has broadcast the weights"
))  # fmt: skip
def other_weights(scene: Scene) -> None:
    if dist.get_rank() == 1:
        with torch.no_grad():
            next(scene.model.parameters()).add_(0.01)


@fault("gradients-not-reduced", models=MODELS, origin=(
    "DDP documentation: forward through `model.module` or under `no_sync` skips the reduction"
))  # fmt: skip
def not_reduced(scene: Scene) -> None:
    wrapped = scene.model.module
    scene.forward = lambda x, y: scene.loss(wrapped(x), y)  # type: ignore[method-assign]


@fault("rank-with-another-rate", models=MODELS, origin=(
    "mechanism: a plateau scheduler is stepped with each rank's own loss"
))  # fmt: skip
def other_rate(scene: Scene) -> None:
    if dist.get_rank() == 1:
        for group in scene.optimizer.param_groups:
            group["lr"] *= 0.5
            if "initial_lr" in group:
                group["initial_lr"] *= 0.5
        if scene.scheduler is not None and hasattr(scene.scheduler, "base_lrs"):
            scene.scheduler.base_lrs = [rate * 0.5 for rate in scene.scheduler.base_lrs]


@fault("same-batch-on-every-rank", models=MODELS, when="start", origin=(
    "DistributedSampler documentation: without it every rank trains on the same samples"
))  # fmt: skip
def same_batch(scene: Scene) -> None:
    again = Scene(scene.kind, scene.seed)
    scene.batch = again.batch


@fault("rank-reads-broken-labels", models=MODELS, origin=(
    "mechanism: one node has a stale copy of the label files"
))  # fmt: skip
def broken_labels(scene: Scene) -> None:
    if dist.get_rank() == 1:
        scene.transform = lambda x, y: (x, y.roll(1, 0))


@fault("rank-reads-not-a-number", models=MODELS, origin=(
    "mechanism: a bad disk on one node; the reduction spreads it to all"
))  # fmt: skip
def not_a_number(scene: Scene) -> None:
    if dist.get_rank() == 1:
        scene.transform = lambda x, y: (torch.full_like(x, math.nan), y)


@fault("rank-lost-its-optimizer-state", models=MODELS, origin=(
    "mechanism: a restarted rank loads the weights and not the optimizer's state"
))  # fmt: skip
def lost_state(scene: Scene) -> None:
    if dist.get_rank() == 1:
        scene.optimizer.state.clear()
