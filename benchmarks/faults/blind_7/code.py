"""Slips of the pen in the model, the loss and the loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "layer-made-anew-in-forward",
    origin="github.com/graykode/nlp-tutorial/issues/29: a Linear that is written into forward is "
    "drawn anew at every call and never trained",
    models=("series", "images"),
)
def make_anew(scene: Scene) -> None:
    def project(_layer: nn.Module, args: Any, output: Tensor) -> Tensor:
        fresh: Tensor = nn.Linear(32, 32)(args[0] if scene.kind == "series" else output)
        return fresh

    layer = scene.model.gate if scene.kind == "series" else scene.model[10]
    layer.register_forward_hook(project)


@fault(
    "critic-clamp-on-every-weight",
    origin="github.com/ratschlab/RGAN/issues/12, martinarjovsky/WassersteinGAN/issues/32: clipping "
    "all weights to 0.01 is overly harsh for a recurrent net, and catches norm gains too",
)
def clamp(scene: Scene) -> None:
    @torch.no_grad()
    def clamp_all(scene: Scene) -> None:
        for parameter in scene.model.parameters():
            parameter.clamp_(-0.01, 0.01)

    scene.after_step = clamp_all


@fault(
    "probabilities-given-to-the-divergence",
    origin="github.com/lightly-ai/lightly/pull/1341, pytorch/pytorch/issues/5282: kl_div expects "
    "log-probabilities, and is given those of softmax",
    models=("language",),
)
def diverge(scene: Scene) -> None:
    def loss(logits: Tensor, y: Tensor) -> Tensor:
        rows = logits.flatten(0, -2)
        target = F.one_hot(y.flatten(), rows.shape[1]) * 0.9 + 0.1 / rows.shape[1]
        return F.kl_div(rows.softmax(1), target, reduction="batchmean")

    scene.loss = loss


def four_small_batches(scene: Scene) -> None:
    """Four batches to a step."""
    scene.accumulate = 4


@fault(
    "divided-by-the-accumulation-twice",
    origin="github.com/huggingface/transformers/pull/35210 and /pull/34511: the loss is a mean over "
    "the whole step already, and backward divides it by the number of parts again",
    models=("images",),
    setup=four_small_batches,
)
def divide_twice(scene: Scene) -> None:
    loss = scene.loss

    def divided(output: Tensor, y: Tensor) -> Tensor:
        value = loss(output, y)
        part = value / scene.accumulate  # the loss that is shown stays whole
        return part + (value - part).detach()

    scene.loss = divided
