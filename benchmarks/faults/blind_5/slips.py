"""A slip in the line that computes the loss."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "log-forgotten-before-nll",
    origin="github.com/AnubhavGupta3377/Text-Classification-Models-Pytorch/issues/9 and "
    "yanx27/Pointnet_Pointnet2_pytorch/issues/30: nll_loss gets probabilities instead of their "
    "logarithms, so that the loss lies between -1 and 0",
    models=("language",),
)
def log_forgotten(scene: Scene) -> None:
    def loss(logits: Tensor, y: Tensor) -> Tensor:
        return F.nll_loss(logits.float().softmax(-1).flatten(0, -2), y.flatten())

    scene.loss = loss
