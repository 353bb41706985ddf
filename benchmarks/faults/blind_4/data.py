"""Faults of the data."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "resized-without-antialiasing",
    origin="pytorch/pytorch#65142: interpolate without antialias",
    models=("images",),
)
def resized(scene: Scene) -> None:
    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        small = F.interpolate(x, scale_factor=1 / 3, mode="nearest")
        return F.interpolate(small, size=x.shape[-2:], mode="bilinear"), y

    scene.transform = transform


@fault(
    "offset-eats-the-digits",
    origin="autowarefoundation/autoware_universe#3090, centreborelli/s2p#82",
    models=("series",),
)
def offset(scene: Scene) -> None:
    """A northing in metres leaves half a metre of resolution in single precision."""
    northing = 5.4e6
    scene.transform = lambda x, y: ((x + northing) - northing, (y + northing) - northing)


@fault("pair-augmented-by-two-draws", origin="Project-MONAI/MONAI#1102", models=("series",))
def pair(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(5)

    def augment(value: Tensor) -> Tensor:
        return value * (0.7 + 0.6 * torch.rand(len(value), 1, 1, generator=generator))

    scene.transform = lambda x, y: (augment(x), augment(y))
