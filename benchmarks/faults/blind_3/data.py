"""Faults of the data on its way into the model."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from faults.models import KINDS
from faults.scene import Scene, fault


@fault(
    "viewed-not-permuted",
    origin="deeplearning4j/deeplearning4j issue 8201: channels-last pictures need a permutation, "
    "and a reshape to the same shape is accepted without complaint",
    models=("images",),
)
def viewed(scene: Scene) -> None:
    """Pictures stored with the channel last are read as if it came first."""
    scene.transform = lambda x, y: (x.permute(0, 2, 3, 1).contiguous().view(x.shape), y)


@fault(
    "vocabulary-file-cut-short",
    origin="mechanism: words that a shortened vocabulary file lacks become the unknown word without a "
    "warning (unknown words left in training: MinishLab/model2vec pull request 359)",
    models=("language",),
)
def cut_short(scene: Scene) -> None:
    """The last quarter of the words becomes word 0, in the input and in the target."""

    def unknown(tokens: Tensor) -> Tensor:
        return torch.where(tokens >= 24, torch.zeros_like(tokens), tokens)

    scene.transform = lambda x, y: (unknown(x), unknown(y))


@fault(
    "smoothed-with-the-future",
    origin="temporalcv documentation, example 16: a centred rolling mean computed on the whole "
    "series shows the model what it is to forecast",
    models=("series",),
)
def smoothed(scene: Scene) -> None:
    """Every input is the mean of itself, the value before and the value to be forecast."""

    def centred(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        whole = torch.cat([x[:, :1], x, y[:, -1:]], 1).transpose(1, 2)
        return F.avg_pool1d(whole, 3, stride=1).transpose(1, 2), y

    scene.transform = centred


@fault(
    "gaps-dropped-and-closed-up",
    origin="mechanism: dropna on a series with gaps closes them up, so that one step of the table "
    "is no longer one step of time",
    models=("series",),
)
def closed_up(scene: Scene) -> None:
    """A third of the rows is missing, and the rest stands side by side."""
    generator = torch.Generator().manual_seed(5)

    def dropped(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        whole = torch.cat([x, y[:, -1:]], 1)
        kept = torch.randperm(whole.shape[1], generator=generator)[:17].sort().values
        return whole[:, kept[:-1]], whole[:, kept[1:]]

    scene.transform = dropped


@fault(
    "standardised-twice",
    origin="soumith/imagenet-multiGPU.torch pull request 18, talshaharabany/AutoSAM issue 3: the "
    "loader and the hook both subtract the mean and divide by the deviation",
    models=("series",),
)
def twice(scene: Scene) -> None:
    """Inputs that were standardised already lose the mean of the raw unit once more."""
    scene.transform = lambda x, y: ((x - 0.4) / 0.5, y)


@fault(
    "end-of-sentence-taken-for-padding",
    origin="mlabonne/llm-course issue 33, deepseek-ai/DeepSeek-Coder issue 163: padding and end "
    "share one number, the collator hides it from the loss and the model never stops",
    models=("language",),
)
def end_hidden(scene: Scene) -> None:
    """The commonest word of the grammar is never again a target."""
    sample = KINDS["language"].source(torch.Generator().manual_seed(5))(64)[1]
    end = int(sample.flatten().bincount().argmax())
    scene.transform = lambda x, y: (x, y.masked_fill(y == end, -100))
