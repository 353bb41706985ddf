"""Held-out faults of the data: what reaches the model is not what was meant."""

from __future__ import annotations

import torch
from torch import Tensor

from faults.scene import Scene, fault


@fault(
    "labels-shifted-twice",
    origin="huggingface/transformers#37830 and #47394: the loss shifts labels that were shifted",
    models=("language",),
)
def shifted(scene: Scene) -> None:
    """The model is taught the token after the next one."""
    scene.transform = lambda x, y: (x[:, :-1], y[:, 1:])


@fault(
    "first-batch-for-ever",
    origin="ZhaoJ9014/face.evoLVe#39: `next(iter(loader))` in the loop yields the first batch",
)
def first_batch(scene: Scene) -> None:
    """The loop makes a new iterator at each step, so it always sees the same batch."""
    batch = scene.batch()
    scene.batch = lambda: batch


@fault(
    "mirrored-images-keep-their-label",
    origin="ultralytics/ultralytics#5332, zllrunning/face-parsing.PyTorch#57: left becomes right",
    models=("images",),
)
def mirrored(scene: Scene) -> None:
    """A random flip mirrors images whose class is a direction."""
    generator = torch.Generator().manual_seed(scene.seed)

    def flip(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        chosen = torch.rand(len(x), generator=generator) < 0.5
        return torch.where(chosen[:, None, None, None], x.flip(3), x), y

    scene.transform = flip


@fault(
    "labels-of-the-batch-before",
    origin="BVLC/caffe#2998: images and labels come from two sources, one of them a batch late",
)
def stale(scene: Scene) -> None:
    """A race in the prefetcher pairs each input with the target of the previous batch."""
    held: list[Tensor] = []

    def late(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        held.append(y)
        return x, held.pop(0) if len(held) > 1 else y

    scene.transform = late


@fault(
    "sorted-and-not-shuffled",
    origin="megvii-model/ShuffleNet-Series#24: a folder read class after class, shuffle=False",
    models=("images",),
)
def sorted_classes(scene: Scene) -> None:
    """Each run of twenty batches holds a single class."""
    source = scene.batch
    size = scene.batch_size

    def one_class() -> tuple[Tensor, Tensor]:
        wanted = scene.step // 20 % 8
        xs, ys = [], []
        while sum(map(len, ys)) < size:
            scene.batch_size = 64
            x, y = source()
            xs.append(x[y == wanted])
            ys.append(y[y == wanted])
        scene.batch_size = size
        return torch.cat(xs)[:size], torch.cat(ys)[:size]

    scene.batch = one_class


@fault(
    "one-column-filled-with-zeros",
    origin="mechanism: a join upstream loses a column and the loader fills it with zeros",
    models=("series",),
)
def zeros(scene: Scene) -> None:
    """One of four channels goes silent in inputs and targets alike, so the loss looks better."""
    keep = torch.tensor([1.0, 1.0, 0.0, 1.0])
    scene.transform = lambda x, y: (x * keep, y * keep)


@fault(
    "stored-as-integers",
    origin="mechanism: an export writes a real column as int16 without a scale",
    models=("series",),
)
def integers(scene: Scene) -> None:
    """Values between minus one and one are truncated to whole numbers."""
    scene.transform = lambda x, y: (x.trunc(), y.trunc())


@fault(
    "workers-share-a-seed",
    origin="pytorch/pytorch#5059, facebookresearch/fairseq#1383: every worker draws the same",
)
def same_seed(scene: Scene) -> None:
    """Eight workers yield the same two samples, so a batch of sixteen holds two."""

    def repeat(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([x[:2]] * 8), torch.cat([y[:2]] * 8)

    scene.transform = repeat
