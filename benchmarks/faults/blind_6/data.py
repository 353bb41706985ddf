"""Batches that are not what the dataset holds."""

from __future__ import annotations

import torch
from torch import Tensor

from faults.scene import Scene, fault


@fault(
    "truncated-files-load-grey",
    origin="pytorch/vision#138 and unpackAI/unpackai#1: cut-off files stop the loader until "
    "LOAD_TRUNCATED_IMAGES is set; from then on their lower rows are grey and keep their label",
    models=("images",),
)
def truncated_files(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(60 + scene.seed)

    def cut(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x = x.clone()
        for row in x:
            if torch.rand((), generator=generator) < 0.4:
                row[:, int(torch.randint(1, 6, (), generator=generator)) :] = 0.0
        return x, y

    scene.transform = cut


@fault(
    "no-data-marker-taken-for-a-reading",
    origin="stanfordmlgroup/methane-gapfill-ml#10: the archive writes -9999 where a reading is "
    "missing, and the program knows only empty fields as missing",
    models=("series",),
)
def no_data_marker(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(61 + scene.seed)

    def mark(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        whole = torch.cat([x[:, :1], y], 1)
        whole[torch.rand(whole.shape, generator=generator) < 0.01] = -9999.0
        return whole[:, :-1], whole[:, 1:]

    scene.transform = mark


@fault(
    "sampler-given-one-weight-per-class",
    origin="deep-voice/soundbay#49: WeightedRandomSampler wants a weight for each sample; given "
    "one for each class it draws only the first few samples, for ever",
    models=("images",),
)
def one_weight_per_class(scene: Scene) -> None:
    drawn = scene.batch
    images, labels = drawn()
    generator = torch.Generator().manual_seed(62 + scene.seed)
    weights = torch.ones(8)

    def batch() -> tuple[Tensor, Tensor]:
        sampler = torch.utils.data.WeightedRandomSampler(
            weights.tolist(), scene.batch_size, generator=generator
        )
        index = torch.tensor(list(sampler))
        return images[index], labels[index]

    scene.batch = batch


@fault(
    "one-sample-fills-the-batch",
    origin="NVIDIA-Genomics-Research/AtacWorks#207: every sample of a training batch is the same "
    "one, only the next batch brings another",
)
def one_sample_fills_the_batch(scene: Scene) -> None:
    def repeated(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x[-1:].expand_as(x).clone(), y[-1:].expand_as(y).clone()

    scene.transform = repeated
