"""Faults of layers: how they start, what they normalise, what is added to them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "normalised-over-time",
    origin="jadore801120/attention-is-all-you-need-pytorch pull request 17: layer normalisation "
    "along the sequence instead of the features",
    models=("language",),
)
def over_time(scene: Scene) -> None:
    """The last normalisation takes mean and deviation over the positions of a sentence."""
    norm = scene.model.norm

    def along_sequence(x: Tensor) -> Tensor:
        turned = F.layer_norm(x.transpose(1, 2), x.shape[1:2], eps=norm.eps)
        return turned.transpose(1, 2) * norm.weight + norm.bias

    norm.forward = along_sequence


class _Adapted(nn.Module):
    """A frozen linear layer with a trained low-rank addition."""

    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * base.in_features**-0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + F.linear(F.linear(x, self.down), self.up)


def _adapted_head(scene: Scene) -> None:
    """The head becomes frozen with an adapter."""
    scene.model.head = _Adapted(scene.model.head)
    scene.optimizer.param_groups[0]["params"] += [scene.model.head.down, scene.model.head.up]


def _merge(scene: Scene) -> None:
    """Fold the adapter into the frozen weight, as an evaluation does for speed."""
    if scene.step % 10 == 0:
        head = scene.model.head
        with torch.no_grad():
            head.base.weight.add_(head.up @ head.down)


@fault(
    "adapter-merged-and-never-taken-out",
    origin="EricLBuehler/candle-lora issue 26, jingyaogong/minimind pull request 598: a layer that "
    "does not know that it is merged adds the product again",
    models=("language", "series"),
    setup=_adapted_head,
)
def merged_again(scene: Scene) -> None:
    """Every ten steps the adapter's product stays behind in the frozen weight."""
    scene.after_step = _merge


@fault(
    "both-factors-start-at-zero",
    origin="Guitaricet/relora issue 18, nvidia-cosmos/cosmos-predict2.5 pull request 15: two factors at zero give each other no gradient, ever",
    when="start",
)
def zero_times_zero(scene: Scene) -> None:
    """The last hidden layer and the head begin at zero, and only the last bias learns."""
    model = scene.model
    silent = {
        "language": lambda: (model.norm, model.head),
        "images": lambda: (model[7], model[12]),
        "series": lambda: (model.value, model.head),
    }[scene.kind]()
    for layer in silent:
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
