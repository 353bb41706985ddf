"""One line of the training loop is wrong or missing."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "zero-grad-forgotten",
    origin="thecodeforge.io/ml-ai/pytorch-training-loop: the most common slip, gradients add up "
    "for ever",
)
def zero_grad_forgotten(scene: Scene) -> None:
    scene.zero_grad = False


def _accumulated(scene: Scene) -> None:
    scene.accumulate = 4
    scene.clip = None


@fault(
    "accumulated-loss-not-divided",
    origin="karpathy/nanoGPT#206, agokrani/distillKitPlus#5: gradients are summed over the "
    "micro-batches",
    models=("images",),
    setup=_accumulated,
)
def loss_not_divided(scene: Scene) -> None:
    def undivided(scene: Scene) -> None:
        for parameter in scene.model.parameters():
            assert parameter.grad is not None
            parameter.grad.mul_(scene.accumulate)

    scene.before_step = undivided


@fault(
    "softmax-before-cross-entropy",
    origin="Lightning-Universe/lightning-bolts#654: the loss takes the softmax of a softmax",
    models=("language",),
)
def softmax_twice(scene: Scene) -> None:
    loss = scene.loss
    scene.loss = lambda logits, y: loss(F.softmax(logits, -1), y)


@fault(
    "target-broadcast-in-mse",
    origin="pytorch/pytorch#16045: shapes differ, so every output is compared with every target",
    models=("series",),
)
def target_broadcast(scene: Scene) -> None:
    def loss(value: Tensor, y: Tensor) -> Tensor:
        return (value - y.unsqueeze(1)).pow(2).mean()

    scene.loss = loss
