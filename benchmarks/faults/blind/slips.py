"""Small slips in the code around the model."""

from __future__ import annotations

import torch
from torch import Tensor

from faults.scene import Scene, fault


@fault(
    "penalty-subtracted",
    origin="mechanism: loss - strength * norm for loss + strength * norm",
    models=("language", "series"),
)
def penalty(scene: Scene) -> None:
    loss = scene.loss

    def rewarded(output: Tensor, y: Tensor) -> Tensor:
        squares = torch.stack([p.square().sum() for p in scene.model.parameters()])
        return loss(output, y) - 0.01 * squares.sum()

    scene.loss = rewarded


@fault(
    "nans-swept-under-zeros",
    origin="Holmeyoung/crnn-pytorch#47: what is not a number in a gradient is replaced by zero",
    models=("language", "series"),
)
def swept(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(scene.seed)

    def sweep(scene: Scene) -> None:
        broken = float(torch.rand((), generator=generator)) < 0.6
        for parameter in scene.model.parameters():
            if parameter.grad is not None:
                if broken:
                    parameter.grad.fill_(float("nan"))
                parameter.grad.nan_to_num_(nan=0.0)

    scene.after_backward = sweep


@fault(
    "other-data-passed-in-train-mode",
    origin="princeton-vl/pytorch_stacked_hourglass#44: validation runs under no_grad, not eval()",
    models=("images",),
)
def other_data(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(scene.seed)

    def look(scene: Scene) -> None:
        with torch.no_grad():
            scene.model(torch.rand(16, 3, 12, 12, generator=generator) * 4)

    scene.after_step = look


@fault(
    "only-the-last-token-trained",
    origin="mechanism: logits[:, -1] copied from the code that generates",
    models=("language",),
)
def last_token(scene: Scene) -> None:
    loss = scene.loss
    scene.loss = lambda logits, y: loss(logits[:, -1:], y[:, -1:])
