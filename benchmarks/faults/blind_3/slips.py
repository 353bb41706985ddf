"""Slips of code in the loss and around the step."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "easy-examples-mined-for-hard",
    origin="mining of hard examples (Shrivastava et al. 2016, arXiv 1604.03540) with an ascending "
    "sort, so that the half with the smallest loss is kept",
    models=("language",),
)
def easy_mined(scene: Scene) -> None:
    """Only the half of the examples that the model knows best is trained on."""

    def mined(logits: Tensor, y: Tensor) -> Tensor:
        each = F.cross_entropy(logits.flatten(0, -2).float(), y.flatten(), reduction="none")
        return each.sort().values[: len(each) // 2].mean()

    scene.loss = mined


def _clamp(scene: Scene) -> None:
    """Force every parameter into a box, as the critic of a Wasserstein GAN is."""
    with torch.no_grad():
        for parameter in scene.model.parameters():
            parameter.clamp_(-0.1, 0.1)


@fault(
    "critic-clamp-on-the-wrong-model",
    origin="weight clipping of Wasserstein GANs (Arjovsky et al. 2017, arXiv 1701.07875), called "
    "with the parameters of another network",
    models=("language", "images"),
)
def clamped(scene: Scene) -> None:
    """After each step every parameter, gains of normalisation too, is cut to 0.1."""
    scene.after_step = _clamp
