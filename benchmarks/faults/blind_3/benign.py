"""Changes that belong to healthy training."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from faults.scene import Scene, benign

_STAGE_STEPS = 15


@benign(
    "rate-cools-down-over-a-hundred-steps",
    origin="warm-up, plateau and cool-down (Haegele et al. 2024, arXiv 2405.18392)",
)
def cool_down(scene: Scene) -> None:
    """The rate falls on a line to a tenth and stays there."""
    scene.scheduler = torch.optim.lr_scheduler.LambdaLR(
        scene.optimizer, lambda step: max(0.1, 1 - 0.9 * step / 100)
    )


def _against_the_rate(scene: Scene) -> None:
    """Momentum swings between 0.85 and 0.95, and rate / (1 - momentum) stays 0.5."""
    phase = (scene.step - 300) % 80 / 80
    momentum = 0.9 + 0.05 * (1 - abs(4 * ((phase + 0.25) % 1) - 2))
    for group in scene.optimizer.param_groups:
        group["momentum"] = momentum
        group["lr"] = 0.5 * (1 - momentum)


@benign(
    "momentum-cycled-against-the-rate",
    origin="cyclical momentum (Smith 2018, arXiv 1803.09820; OneCycleLR of PyTorch)",
    models=("images",),
)
def cycled(scene: Scene) -> None:
    """Momentum rises while the rate falls, and back."""
    scene.before_step = _against_the_rate


@benign(
    "batch-and-rate-halved-together",
    origin="memory runs short: the batch is halved and the rate of Adam follows by the square root "
    "(Malladi et al. 2022, arXiv 2205.10287)",
    models=("language", "series"),
)
def halved(scene: Scene) -> None:
    """Eight samples in place of sixteen, with the smaller rate that belongs to them."""
    scene.batch_size //= 2
    for group in scene.optimizer.param_groups:
        group["lr"] *= 0.5**0.5


def _first_ten(scene: Scene) -> None:
    """Training begins on the first ten steps of each sequence."""
    scene.transform = lambda x, y: (x[:, :10], y[:, :10])


@benign(
    "windows-lengthen-in-stages",
    origin="sequence length warm-up (Li et al. 2022, arXiv 2108.06084)",
    models=("language", "series"),
    setup=_first_ten,
)
def lengthen(scene: Scene) -> None:
    """Sequences grow by two steps every fifteen training steps until they are whole."""

    def staged(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        length = 12 + 2 * ((scene.step - 300) // _STAGE_STEPS)
        return x[:, :length], y[:, :length]

    scene.transform = staged


class _Checkpoint:
    """Keeps the whole state of step 269."""

    state: tuple[Any, ...] = ()

    def __call__(self, scene: Scene) -> None:
        if scene.step == 269:
            scheduler = scene.scheduler.state_dict() if scene.scheduler else None
            parts = (scene.model.state_dict(), scene.optimizer.state_dict(), scheduler)
            self.state = copy.deepcopy(parts)


def _keep(scene: Scene) -> None:
    """A checkpoint is taken on the way."""
    scene.after_step = _Checkpoint()


@benign(
    "rolled-back-thirty-steps",
    origin="going on from an earlier checkpoint with other batches (Chowdhery et al. 2022, PaLM, "
    "arXiv 2204.02311, section 5.1)",
    setup=_keep,
)
def rolled_back(scene: Scene) -> None:
    """Model, optimizer and schedule go back thirty steps, and new data follows."""
    model, optimizer, scheduler = scene.after_step.state
    scene.model.load_state_dict(model)
    scene.optimizer.load_state_dict(optimizer)
    if scene.scheduler:
        scene.scheduler.load_state_dict(scheduler)


@benign(
    "gains-and-biases-leave-the-decay",
    origin="no decay on normalisation and biases (He et al. 2019, arXiv 1812.01187)",
    models=("images",),
)
def leave_the_decay(scene: Scene) -> None:
    """One group becomes two, with the moments of every parameter kept."""
    (group,) = scene.optimizer.param_groups
    parameters = group["params"]
    group["params"] = [p for p in parameters if p.ndim > 1]
    rest = [p for p in parameters if p.ndim <= 1]
    scene.optimizer.param_groups.append({**group, "params": rest, "weight_decay": 0.0})


@benign(
    "logits-held-near-zero",
    origin="auxiliary z-loss (Chowdhery et al. 2022, PaLM, arXiv 2204.02311, section 5)",
    models=("language", "images"),
)
def z_loss(scene: Scene) -> None:
    """The square of the log-normaliser joins the loss with weight 0.0001."""
    plain = scene.loss

    def with_penalty(logits: Tensor, y: Tensor) -> Tensor:
        return plain(logits, y) + 1e-4 * logits.logsumexp(-1).square().mean()

    scene.loss = with_penalty
