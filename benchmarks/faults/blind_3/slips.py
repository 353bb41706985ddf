"""Slips of code in the loss."""

from __future__ import annotations

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
