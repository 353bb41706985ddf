"""Data that arrives in another order, another alphabet or another scale."""

from __future__ import annotations

import torch
from torch import Tensor

from faults.scene import Scene, fault


@fault(
    "input-columns-in-another-order",
    origin="github.com/lightgbm-org/LightGBM/issues/4102, scikit-learn/scikit-learn/issues/7242: "
    "columns are taken by position, and a rebuilt table holds them in another order",
    models=("series",),
)
def reorder(scene: Scene) -> None:
    scene.transform = lambda x, y: (x[..., [1, 2, 3, 0]], y)


@fault(
    "ids-moved-by-added-special-tokens",
    origin="github.com/InternLM/InternLM/issues/715, huggingface/transformers/issues/29219: special "
    "tokens are given ids that the embedding does not expect",
    models=("language",),
)
def move_ids(scene: Scene) -> None:
    def moved(ids: Tensor) -> Tensor:
        return torch.where(ids + 3 < 32, ids + 3, 0)

    scene.transform = lambda x, y: (moved(x), moved(y))


@fault(
    "rows-and-columns-exchanged",
    origin="github.com/developmentseed/tensorflow-eo-training/issues/11: transpose(2, 1, 0) for "
    "transpose(2, 0, 1) turns every picture over its diagonal",
    models=("images",),
)
def exchange_axes(scene: Scene) -> None:
    scene.transform = lambda x, y: (x.transpose(2, 3), y)


def _standardised(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Each channel of each window to mean zero and deviation one, with no floor that matters."""
    window = torch.cat([x, y[:, -1:]], 1)
    window = (window - window.mean(1, keepdim=True)) / (window.std(1, keepdim=True) + 1e-8)
    return window[:, :-1], window[:, 1:]


def standardise_windows(scene: Scene) -> None:
    """The healthy program standardises each window by itself."""
    scene.transform = _standardised


@fault(
    "silent-windows-blown-up-to-noise",
    origin="github.com/vanvalenlab/deepcell-toolbox/issues/71, philipperemy/deep-speaker/issues/5: "
    "samples of almost no deviation are divided by it",
    models=("series",),
    setup=standardise_windows,
)
def silence(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(scene.seed)

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        window = torch.cat([x, y[:, -1:]], 1)
        quiet = torch.rand(len(window), 1, 1, generator=generator) < 0.25
        hiss = 0.3 + 1e-4 * torch.randn(window.shape, generator=generator)
        window = torch.where(quiet, hiss, window)
        return _standardised(window[:, :-1], window[:, 1:])

    scene.transform = transform


@fault(
    "ids-wrap-in-a-narrow-integer",
    origin="github.com/huggingface/transformers/issues/2825, urvashik/knnlm/issues/6: ids stored as "
    "uint16 wrap for a vocabulary that is larger",
    models=("language",),
)
def wrap_ids(scene: Scene) -> None:
    scene.transform = lambda x, y: (x % 16, y % 16)
