"""Held-out slips of code: one wrong word in the loss or in the loop."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "softmax-before-cross-entropy",
    origin="bowang-lab/Transformer-GCN-QA#32, mlelarge/graph_neural_net#37: softmax is done twice",
    models=("language",),
)
def twice(scene: Scene) -> None:
    """The loss takes probabilities for logits."""
    loss = scene.loss
    scene.loss = lambda logits, y: loss(logits.softmax(-1), y)


@fault(
    "softmax-over-the-batch",
    origin="fxia22/pointnet.pytorch#27: log_softmax(x, dim=0)",
    models=("images",),
)
def over_batch(scene: Scene) -> None:
    """Samples compete with each other instead of classes."""
    scene.loss = lambda logits, y: F.nll_loss(F.log_softmax(logits, 0), y)


@fault(
    "difference-broadcast-over-pairs",
    origin="pytorch/pytorch#16045, LAMDA-Tabular/TALENT#92: shapes (n, 1) and (n,) give (n, n)",
    models=("series",),
)
def pairs(scene: Scene) -> None:
    """Every forecast is compared with the target of every sample."""

    def loss(value: Tensor, y: Tensor) -> Tensor:
        return (value[:, None] - y[None]).pow(2).mean()

    scene.loss = loss


@fault(
    "time-taken-for-batch",
    origin="pytorch/pytorch#6178: a recurrent layer gets batch and time in the wrong order",
    models=("series",),
)
def swapped(scene: Scene) -> None:
    """The recurrence runs from sample to sample."""
    scene.model.recurrent.batch_first = False  # type: ignore[union-attr, assignment]


@fault(
    "gradients-zeroed-before-the-step",
    origin="sacmehta/EdgeNets#14: zero_grad stands between backward and step",
    models=("language", "series"),
)
def zeroed(scene: Scene) -> None:
    """The optimizer never finds a gradient."""
    scene.before_step = lambda scene: scene.optimizer.zero_grad()
