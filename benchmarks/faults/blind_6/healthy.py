"""Changes that belong to healthy training and must raise no alarm."""

from __future__ import annotations

import io

import torch
from torch import Tensor, nn

from faults.models import KINDS
from faults.scene import Scene, benign


@benign(
    "schedule-exchanged-at-the-same-rate",
    origin="mechanism: a run of unknown length leaves its cosine for an inverse square root that "
    "goes on from the present rate (Zhai et al. 2022, arXiv:2106.04560)",
    models=("language",),
)
def schedule_exchanged(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    scene.scheduler = torch.optim.lr_scheduler.LambdaLR(
        scene.optimizer, lambda step: (300 / (300 + step)) ** 0.5
    )


@benign(
    "half-turns-added-to-the-augmentation",
    origin="mechanism: a flip of both axes that keeps the angle, and so the label, of a grating",
    models=("images",),
)
def half_turns(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(63 + scene.seed)

    def turn(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        chosen = torch.rand(len(x), generator=generator) < 0.5
        return torch.where(chosen[:, None, None, None], x.flip(2, 3), x), y

    scene.transform = turn


@benign(
    "gradient-probed-on-a-fixed-batch",
    origin="mechanism: every tenth step the gradient of a fixed batch is taken with autograd.grad "
    "to log its size (McCandlish et al. 2018, arXiv:1812.06162); nothing is accumulated",
)
def gradient_probed(scene: Scene) -> None:
    x, y = KINDS[scene.kind].source(torch.Generator().manual_seed(64))(32)
    drawn = scene.batch

    def batch() -> tuple[Tensor, Tensor]:
        if scene.step % 10 == 0:
            scene.model.eval()
            parameters = list(scene.model.parameters())
            torch.autograd.grad(scene.forward(x, y), parameters)
            scene.model.train()
        return drawn()

    scene.batch = batch


@benign(
    "dropout-switched-off-for-the-last-phase",
    origin="mechanism: early dropout (Liu et al. 2023, arXiv:2303.01500) ends and the rest of the "
    "run trains without it",
    models=("images",),
)
def dropout_off(scene: Scene) -> None:
    for module in scene.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


@benign(
    "resumed-from-a-file-with-a-new-shuffle",
    origin="mechanism: model, optimizer and schedule come back from a checkpoint, and the loader "
    "begins with another seed",
)
def resumed_with_a_new_shuffle(scene: Scene) -> None:
    file = io.BytesIO()
    torch.save([scene.model.state_dict(), scene.optimizer.state_dict()], file)
    file.seek(0)
    model, optimizer = torch.load(file)
    scene.model.load_state_dict(model)
    scene.optimizer.load_state_dict(optimizer)
    source = KINDS[scene.kind].source(torch.Generator().manual_seed(9000 + scene.seed))
    scene.batch = lambda: source(scene.batch_size)


@benign(
    "layout-changed-to-channels-last",
    origin="mechanism: the memory format is changed for speed, which leaves every value alone",
    models=("images",),
)
def channels_last(scene: Scene) -> None:
    scene.model.to(memory_format=torch.channels_last)
    scene.transform = lambda x, y: (x.contiguous(memory_format=torch.channels_last), y)
