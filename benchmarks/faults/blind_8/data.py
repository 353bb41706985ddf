"""The batches are not what the model was meant to learn from."""

from __future__ import annotations

import torch
from torch import Tensor

from faults.scene import Scene, fault


@fault(
    "labels-shuffled-apart",
    origin="mlcommons/GaNDLF#870: samples and labels are shuffled separately",
)
def labels_shuffled(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(8)
    scene.transform = lambda x, y: (x, y[torch.randperm(len(y), generator=generator)])


@fault(
    "divided-by-255-twice",
    origin="pkmital/pycadl#5: the batch is divided by 255 twice before the model sees it",
    models=("images", "series"),
)
def divided_twice(scene: Scene) -> None:
    scene.transform = lambda x, y: (x / 255, y)


@fault(
    "sample-holds-nan",
    origin="prs-eth/Marigold#111: some samples on disk hold NaN and the loss follows",
    models=("images", "series"),
)
def nan_sample(scene: Scene) -> None:
    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if scene.step % 12 == 7:
            x = x.clone()
            x[3].view(-1)[5] = float("nan")
        return x, y

    scene.transform = transform


@fault(
    "sorted-by-class",
    origin="zalandoresearch/fashion-mnist#5, BVLC/caffe#1445: the files lie sorted by label, no "
    "shuffle",
    models=("images",),
)
def sorted_by_class(scene: Scene) -> None:
    draw = scene.batch
    size = scene.batch_size

    def batch() -> tuple[Tensor, Tensor]:
        scene.batch_size = 16 * size
        x, y = draw()
        scene.batch_size = size
        chosen = (y == (scene.step // 12) % 8).nonzero()[:size, 0]
        return x[chosen], y[chosen]

    scene.batch = batch


@fault(
    "same-few-batches",
    origin="fangchangma/sparse-to-dense.pytorch#19, pytorch/pytorch#5059: reseeding repeats the "
    "same data",
    models=("language",),
)
def same_few_batches(scene: Scene) -> None:
    kept = [scene.batch() for _ in range(4)]
    scene.batch = lambda: kept[scene.step % len(kept)]


def _pad(scene: Scene, label: int) -> None:
    generator = torch.Generator().manual_seed(18)

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        length = torch.randint(5, x.shape[1] + 1, (len(x), 1), generator=generator)
        padding = torch.arange(x.shape[1]) >= length
        return x.masked_fill(padding, 0), y.masked_fill(padding, label)

    scene.transform = transform


@fault(
    "padding-counts-in-the-loss",
    origin="huggingface/transformers#2759, 01-ai/Yi#110: the labels of padding are not ignored",
    models=("language",),
    setup=lambda scene: _pad(scene, -100),
)
def padding_counts(scene: Scene) -> None:
    _pad(scene, 0)


@fault(
    "labels-shifted-twice",
    origin="huggingface/transformers#47394, #32944: the dataset shifts the labels and the model "
    "again",
    models=("language",),
)
def shifted_twice(scene: Scene) -> None:
    scene.transform = lambda x, y: (x[:, :-1], y[:, 1:])
