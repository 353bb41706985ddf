"""Held-out changes that belong to healthy training and must raise no alarm."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from faults.scene import Scene, benign


def _lower(scene: Scene) -> list[nn.Module]:
    if scene.kind == "language":
        return [scene.model.embedding, scene.model.blocks[0]]  # type: ignore
    if scene.kind == "images":
        return [scene.model[0], scene.model[1]]  # type: ignore[index]
    return [scene.model.recurrent]  # type: ignore[list-item]


def _freeze(scene: Scene) -> None:
    for module in _lower(scene):
        module.requires_grad_(False)


@benign(
    "lower-layers-unfrozen",
    origin="Howard and Ruder 2018 (arXiv 1801.06146), gradual unfreezing",
    setup=_freeze,
)
def unfreeze(scene: Scene) -> None:
    """Layers that were frozen from the start join the training."""
    for module in _lower(scene):
        module.requires_grad_(True)


@benign(
    "sequences-twice-as-long",
    origin="Devlin et al. 2018 (arXiv 1810.04805): short sequences first, long ones later",
    models=("language",),
)
def longer(scene: Scene) -> None:
    """Two sentences follow each other in one sequence."""

    def join(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        half = len(x) // 2
        return torch.cat([x[:half], x[half:]], 1), torch.cat([y[:half], y[half:]], 1)

    scene.transform = join


@benign(
    "sequences-of-changing-length",
    origin="mechanism: batches bucketed by length",
    models=("language", "series"),
)
def buckets(scene: Scene) -> None:
    """Each batch has its own length between eight and all positions."""

    def cut(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        length = (8, 10, 12, 14, x.shape[1])[scene.step * 7 % 5]
        return x[:, :length], y[:, :length]

    scene.transform = cut


def _fall(step: int) -> float:
    return max(0.02, (1 + math.cos(math.pi * min(step, 300) / 300)) / 2)


def _cosine(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["lr"] = group.get("initial_lr", group["lr"])
    scene.scheduler = torch.optim.lr_scheduler.LambdaLR(scene.optimizer, _fall)


@benign(
    "warm-restart",
    origin="Loshchilov and Hutter 2016 (arXiv 1608.03983)",
    setup=_cosine,
)
def restart(scene: Scene) -> None:
    """The cosine has come to its floor and starts again from the full rate."""
    _cosine(scene)


@benign("short-last-batch", origin="mechanism: drop_last=False leaves a remainder")
def remainder(scene: Scene) -> None:
    """Every twentieth batch is the last of an epoch and holds five samples."""
    source = scene.batch

    def batch() -> tuple[Tensor, Tensor]:
        scene.batch_size = 5 if scene.step % 20 == 19 else 16
        return source()

    scene.batch = batch


@benign("gradients-accumulated", origin="mechanism: four small batches make one step")
def accumulated(scene: Scene) -> None:
    """The optimizer steps after every fourth backward."""
    scene.accumulate = 4


@benign(
    "average-kept-aside",
    origin="Tarvainen and Valpola 2017 (arXiv 1703.01780): a copy follows the weights",
)
def aside(scene: Scene) -> None:
    """An average of the weights is kept beside the model and never written back."""
    average = [p.detach().clone() for p in scene.model.parameters()]

    def follow(scene: Scene) -> None:
        with torch.no_grad():
            for mean, parameter in zip(average, scene.model.parameters(), strict=True):
                mean.lerp_(parameter, 0.01)

    scene.after_step = follow


@benign(
    "adapter-added-with-its-own-group",
    origin="Hu et al. 2021 (arXiv 2106.09685): an addition that starts at zero",
    models=("images", "series"),
)
def adapter(scene: Scene) -> None:
    """A zero addition beside the head gets a parameter group of its own."""
    head = scene.model[-1] if scene.kind == "images" else scene.model.head  # type: ignore
    down = nn.Linear(head.in_features, 4, bias=False)
    up = nn.Linear(4, head.out_features, bias=False)
    nn.init.zeros_(up.weight)
    head.add_module("adapter", nn.Sequential(down, up))
    head.register_forward_hook(lambda m, i, o: o + m.adapter(i[0]))
    scene.optimizer.add_param_group({"params": list(head.adapter.parameters())})


@benign(
    "batch-doubled",
    origin="Smith et al. 2017 (arXiv 1711.00489): the batch grows instead of the rate falling",
)
def doubled(scene: Scene) -> None:
    """The batch grows from sixteen to thirty-two."""
    scene.batch_size = 32


@benign(
    "rate-cut-to-a-tenth",
    origin="He et al. 2015 (arXiv 1512.03385): step decay",
    models=("images",),
)
def step_decay(scene: Scene) -> None:
    """The rate falls to a tenth, as it does two or three times in a classic schedule."""
    for group in scene.optimizer.param_groups:
        group["lr"] *= 0.1


@benign(
    "evaluation-between-steps", origin="mechanism: eval() and train() around a validation batch"
)
def evaluated(scene: Scene) -> None:
    """Every tenth step a batch is evaluated first."""
    scene.evaluate_every = 10


def _noisy(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(scene.seed)
    scene.transform = lambda x, y: (
        x + 0.75 * torch.randn(x.shape, generator=generator) if x.is_floating_point() else x,
        y,
    )


@benign(
    "augmentation-switched-off",
    origin="Ge et al. 2021 (arXiv 2107.08430): strong augmentation ends before the last epochs",
    models=("images",),
    setup=_noisy,
)
def plain(scene: Scene) -> None:
    """Noise that was added from the start is added no more."""
    scene.transform = lambda x, y: (x, y)
