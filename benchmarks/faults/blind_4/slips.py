"""Slips in the code of the loop and of the loss."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault


def _four_at_a_time(scene: Scene) -> None:
    scene.accumulate = 4


@fault(
    "zeroed-within-the-accumulation",
    origin="bytetriper/RAE#67, pytorch/torchtitan#3575",
    models=("images",),
    setup=_four_at_a_time,
)
def zeroed(scene: Scene) -> None:
    """Every micro-batch clears what the ones before it have added."""

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        scene.optimizer.zero_grad()
        return x, y

    scene.transform = transform


_FREQUENCY = 0.65 ** torch.arange(8)


def _unequal_classes(scene: Scene) -> None:
    """Frequent and rare classes, weighted so that each counts alike."""
    draw = scene.batch
    generator = torch.Generator().manual_seed(2000 + scene.seed)
    weight = 1 / _FREQUENCY

    def batch() -> tuple[Tensor, Tensor]:
        x, y = (torch.cat(parts) for parts in zip(*(draw() for _ in range(4)), strict=True))
        chosen = torch.multinomial(_FREQUENCY[y], scene.batch_size, generator=generator)
        return x[chosen], y[chosen]

    scene.batch = batch
    scene.loss = lambda logits, y: F.cross_entropy(logits, y, weight=weight)


@fault(
    "counts-given-as-class-weights",
    origin="PRBonn/lidar-bonnetal#48: more weight for the frequent",
    models=("images",),
    setup=_unequal_classes,
)
def counts(scene: Scene) -> None:
    scene.loss = lambda logits, y: F.cross_entropy(logits, y, weight=_FREQUENCY)
