"""Data that is augmented, labelled, masked or recorded in another way than the model was told."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault

_IGNORED = -100


@fault(
    "class-zero-taken-for-background",
    origin="github.com/open-mmlab/mmsegmentation/issues/1714, 932 and 3787: reduce_zero_label on a "
    "data set without a background class drops class 0 and moves every other label down by one",
    models=("images",),
)
def reduce_zero_label(scene: Scene) -> None:
    scene.transform = lambda x, y: (x, torch.where(y == 0, _IGNORED, y - 1))


def _brightened(scene: Scene, wrap: bool) -> None:
    """Pictures as bytes, brightened by an own amount each, and back to units of deviation."""
    generator = torch.Generator().manual_seed(50 + scene.seed)

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        byte = (x * 24 + 128).round().clamp(0, 255)
        byte = byte + torch.randint(-70, 71, (len(x), 1, 1, 1), generator=generator)
        byte = byte % 256 if wrap else byte.clamp(0, 255)
        return (byte - 128) / 24, y

    scene.transform = transform


@fault(
    "brightness-wraps-round-in-a-byte",
    origin="github.com/tensorpack/tensorpack/issues/614 and vxy10/p5_VehicleDetection_Unet/issues/2"
    ": an augmentation leaves the range of uint8 and nobody clips, so white turns black",
    models=("images",),
    setup=lambda scene: _brightened(scene, wrap=False),
)
def wrap_round(scene: Scene) -> None:
    _brightened(scene, wrap=True)


@fault(
    "answer-marker-not-found",
    origin="github.com/huggingface/trl/issues/1920, 1820 and 1053: the response template is cut "
    "into other tokens, the collator does not find it, and most rows are ignored by the loss",
    models=("language",),
)
def marker_not_found(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(53 + scene.seed)

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        lost = torch.rand(len(y), generator=generator) < 0.9
        return x, torch.where(lost[:, None], _IGNORED, y)

    scene.transform = transform


@fault(
    "recorded-at-another-rate",
    origin="github.com/kitzeslab/bioacoustics-model-zoo/issues/7 and "
    "NervanaSystems/deepspeech/issues/23: files with another sampling rate are read as if they had "
    "the expected one",
    models=("series",),
)
def another_rate(scene: Scene) -> None:
    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        wave = torch.cat([x[:, :1], y], 1)
        half = wave[:, : (wave.shape[1] + 1) // 2].transpose(1, 2)
        slow = F.interpolate(half, wave.shape[1], mode="linear", align_corners=True)
        return slow.transpose(1, 2)[:, :-1], slow.transpose(1, 2)[:, 1:]

    scene.transform = transform
