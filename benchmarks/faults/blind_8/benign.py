"""Changes that belong to healthy training."""

from __future__ import annotations

import copy

import torch

from faults.scene import Scene, benign


@benign(
    "rate-cut-to-a-tenth",
    origin="He et al. 2016, Deep Residual Learning: the rate falls to a tenth at a milestone",
    models=("images", "series"),
)
def rate_cut(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["lr"] *= 0.1


@benign("evaluated-now-and-then", origin="every training loop: validation every 20 steps")
def evaluated(scene: Scene) -> None:
    scene.evaluate_every = 20


@benign(
    "resumed-with-everything",
    origin="PyTorch tutorial, saving and loading a general checkpoint: model, optimizer and "
    "schedule",
)
def resumed(scene: Scene) -> None:
    parts = [scene.model, scene.optimizer, *([scene.scheduler] if scene.scheduler else [])]
    for part in parts:
        part.load_state_dict(copy.deepcopy(part.state_dict()))


@benign(
    "gradients-accumulated-over-four",
    origin="PyTorch notes, AMP examples: accumulation over micro-batches, loss divided",
    models=("images", "series"),
)
def accumulated(scene: Scene) -> None:
    scene.accumulate = 4


_LOWER = {"language": ("embedding", "blocks.0"), "images": ("0", "1")}


def _set_lower(scene: Scene, trains: bool) -> None:
    for name in _LOWER[scene.kind]:
        scene.model.get_submodule(name).requires_grad_(trains)


@benign(
    "lower-layers-unfrozen",
    origin="Howard and Ruder 2018, ULMFiT: gradual unfreezing",
    models=("language", "images"),
    setup=lambda scene: _set_lower(scene, False),
)
def unfrozen(scene: Scene) -> None:
    _set_lower(scene, True)


def _scaled(scene: Scene) -> None:
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)


@benign(
    "loss-scale-backs-off-once",
    origin="PyTorch docs, torch.amp.GradScaler: an overflow skips one step and halves the scale",
    models=("language", "images"),
    setup=_scaled,
)
def backs_off(scene: Scene) -> None:
    def overflow(scene: Scene) -> None:
        if scene.step == 310:
            parameter = next(scene.model.parameters())
            assert parameter.grad is not None
            parameter.grad.view(-1)[0] = float("inf")

    scene.after_backward = overflow


@benign(
    "smaller-last-batch",
    origin="PyTorch docs, DataLoader drop_last=False: the last batch of an epoch is smaller",
)
def smaller_last_batch(scene: Scene) -> None:
    draw = scene.batch
    size = scene.batch_size

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        scene.batch_size = 5 if scene.step % 25 == 24 else size
        return draw()

    scene.batch = batch


@benign(
    "batch-grown-fourfold",
    origin="Smith et al. 2018, Don't Decay the Learning Rate, Increase the Batch Size",
)
def batch_grown(scene: Scene) -> None:
    scene.batch_size *= 4
