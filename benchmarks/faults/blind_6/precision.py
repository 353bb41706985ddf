"""Numbers that were rounded, scaled or differentiated where they must not be."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from faults.scene import Scene, fault


@fault(
    "one-hot-times-the-log-of-zero",
    origin="allenai/allennlp#2797 (in half precision: huggingface/trl#7263): a probability rounds "
    "to zero, its logarithm is infinite, and the zero of the one-hot label makes it not a number",
    models=("images",),
)
def log_of_zero(scene: Scene) -> None:
    def by_hand(logits: Tensor, y: Tensor) -> Tensor:
        wanted = F.one_hot(y, logits.shape[-1]).half()
        return -(wanted * logits.softmax(-1).half().log()).sum(-1).float().mean()

    scene.loss = by_hand


def _scaled_and_accumulated(scene: Scene) -> None:
    scene.accumulate = 4
    scene.clip = None
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)


@fault(
    "unscaled-at-every-micro-batch",
    origin="pytorch/pytorch#36601 (after NVIDIA/apex#439): unscaling belongs only where a step "
    "follows; done at each micro-batch, the earlier ones are divided again and vanish",
    models=("images",),
    setup=_scaled_and_accumulated,
)
def unscaled_at_every_micro_batch(scene: Scene) -> None:
    def unscale(scene: Scene) -> None:
        if (scene.step + 1) % scene.accumulate:
            for parameter in scene.model.parameters():
                if parameter.grad is not None:
                    parameter.grad /= scene.scaler.get_scale()

    scene.after_backward = unscale


def _root_of_each_row(output: Tensor, y: Tensor) -> Tensor:
    known = ~y.isnan()
    gap = (output.float() - y.nan_to_num()) * known
    share = known.flatten(1).sum(1).clamp(min=1)
    return (gap.square().flatten(1).sum(1) / share).sqrt().mean()


def _root_mean_square(scene: Scene) -> None:
    scene.loss = _root_of_each_row


@fault(
    "root-of-a-row-without-a-value",
    origin="pytorch/pytorch#2421: the gradient of a norm at zero is not a number; here a row whose "
    "values are all missing leaves a root of zero, and a finite loss",
    models=("series",),
    setup=_root_mean_square,
)
def root_of_an_empty_row(scene: Scene) -> None:
    def sometimes_empty(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if scene.step % 8 == 7:
            y = y.clone()
            y[0] = torch.nan
        return x, y

    scene.transform = sometimes_empty
