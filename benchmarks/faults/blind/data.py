"""Data that still have the right shape and are no longer right."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault

Pair = tuple[Tensor, Tensor]


@fault(
    "padding-counted-in-the-loss",
    origin="01-ai/Yi#110: the labels of pad tokens are not set to the ignored index",
    models=("language",),
)
def padding(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(scene.seed)

    def pad(x: Tensor, y: Tensor) -> Pair:
        length = torch.randint(8, x.shape[1] + 1, (len(x), 1), generator=generator)
        outside = torch.arange(x.shape[1]) >= length
        return x.masked_fill(outside, 0), y.masked_fill(outside, 0)

    scene.transform = pad


@fault(
    "window-slid-onto-its-target",
    origin="mechanism: an off-by-one in the slice that makes the input window",
    models=("series",),
)
def leak(scene: Scene) -> None:
    scene.transform = lambda x, y: (y, y)


@fault(
    "label-map-rebuilt-from-a-set",
    origin="RomRoc/objdet_fizyr_colab#5: label ids follow the order of a set, new on each resume",
    models=("images", "language"),
)
def rebuilt(scene: Scene) -> None:
    classes = 8 if scene.kind == "images" else 32
    order = torch.arange(classes)
    order[: classes // 2] = order[: classes // 2].roll(1)
    scene.transform = lambda x, y: (x, order[y])


@fault(
    "unit-slip-in-some-rows",
    origin="mechanism: one source of records reports millimetres for metres",
    models=("series",),
)
def unit(scene: Scene) -> None:
    def slip(x: Tensor, y: Tensor) -> Pair:
        factor = torch.ones(len(x), 1, x.shape[2])
        factor[::8, :, 2] = 1000.0
        return x * factor, y * factor

    scene.transform = slip


@fault(
    "labels-partly-of-another-row",
    origin="mechanism: a join that falls back to any row when its key is missing",
    models=("images", "language"),
)
def partly(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(scene.seed)

    def mixed(x: Tensor, y: Tensor) -> Pair:
        other = y.flatten()[torch.randperm(y.numel(), generator=generator)].view_as(y)
        return x, torch.where(torch.rand(y.shape, generator=generator) < 0.2, other, y)

    scene.transform = mixed


@fault(
    "one-shard-again-and-again",
    origin="paiml/entrenar#294: after a resume the loader starts at its first shard once more",
    models=("images", "language"),
)
def shard(scene: Scene) -> None:
    batches = [scene.batch() for _ in range(3)]
    scene.batch = lambda: batches[scene.step % 3]


@fault(
    "cache-scaled-in-place",
    origin="pytorch/vision#680: samples kept in memory are normalised again at every epoch",
    models=("series", "images"),
)
def shrinking(scene: Scene) -> None:
    start = scene.step
    scene.transform = lambda x, y: (x * 0.8 ** (1 + (scene.step - start) // 6), y)


def _mixed(right: bool) -> Callable[[Tensor, Tensor], Pair]:
    generator = torch.Generator().manual_seed(5)

    def mix(x: Tensor, y: Tensor) -> Pair:
        share = 0.6 + 0.4 * torch.rand(len(x), 1, generator=generator)
        one = F.one_hot(y, 8).float()
        label = share if right else 1 - share
        pixels = share[:, :, None, None]
        return pixels * x + (1 - pixels) * x.flip(0), label * one + (1 - label) * one.flip(0)

    return mix


def _mixes(scene: Scene) -> None:
    scene.transform = _mixed(right=True)


@fault(
    "mixup-weights-exchanged",
    origin="mixup (arXiv 1710.09412) with lam for the input and 1 - lam for its label",
    models=("images",),
    setup=_mixes,
)
def exchanged(scene: Scene) -> None:
    scene.transform = _mixed(right=False)
