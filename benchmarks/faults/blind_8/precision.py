"""The numbers do not fit the format they are kept in."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from faults.blind_8.pace import unhurried
from faults.scene import Scene, fault


@torch.no_grad()
def _round_weights(scene: Scene) -> None:
    for parameter in scene.model.parameters():
        parameter.copy_(parameter.bfloat16().float())


@fault(
    "bfloat16-weights-without-master-copy",
    origin="workofart/ml-by-hand#85: updates written back to bf16 weights are rounded away",
    setup=unhurried,
)
def bfloat16_weights(scene: Scene) -> None:
    _round_weights(scene)
    scene.after_step = _round_weights


def _halve_state(scene: Scene) -> None:
    for state in scene.optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):
            state[name].copy_(state[name].half().float())


@fault(
    "adam-in-half-precision",
    origin="afiaka87/glide-finetune#5, pytorch/pytorch#8860: eps=1e-8 and small squares are 0 in "
    "fp16",
    models=("language", "series"),
)
def adam_in_half(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["eps"] = torch.tensor(group["eps"]).half().item()
    _halve_state(scene)
    scene.after_step = _halve_state


def _scaled(scene: Scene) -> None:
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)


@fault(
    "clipped-before-unscaling",
    origin="milesial/Pytorch-UNet#468, harubaru/waifu-diffusion#64: clipping acts on scaled "
    "gradients",
    models=("language", "images"),
    setup=_scaled,
)
def clipped_before_unscaling(scene: Scene) -> None:
    def clip(scene: Scene) -> None:
        nn.utils.clip_grad_norm_(scene.model.parameters(), 1.0)

    scene.after_backward = clip


def _with_positives(floor: int) -> object:
    def loss(logits: Tensor, y: Tensor) -> Tensor:
        each = F.cross_entropy(logits.float(), y, reduction="none")
        positive = (y == 0).float()
        return each.mean() + 0.2 * (each * positive).sum() / positive.sum().clamp(min=floor)

    return loss


def _positives_guarded(scene: Scene) -> None:
    scene.loss = _with_positives(1)  # type: ignore[assignment]


@fault(
    "batch-without-positives",
    origin="JJBOY/BMN-Boundary-Matching-Network#22: the loss divides by a count that can be zero",
    models=("images",),
    setup=_positives_guarded,
)
def batch_without_positives(scene: Scene) -> None:
    scene.loss = _with_positives(0)  # type: ignore[assignment]
