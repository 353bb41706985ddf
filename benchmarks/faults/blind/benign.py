"""Changes that belong to healthy training."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from faults.scene import Scene, benign


@benign("rate-on-a-triangle", origin="cyclical learning rates (arXiv 1506.01186)")
def triangle(scene: Scene) -> None:
    bases = [group["lr"] for group in scene.optimizer.param_groups]
    scene.scheduler = None
    start = scene.step

    def swing(scene: Scene) -> None:
        place = abs(1 - ((scene.step - start) % 40) / 20)
        for group, base in zip(scene.optimizer.param_groups, bases, strict=True):
            group["lr"] = base * (0.3 + 0.7 * place)

    scene.after_step = swing


@benign(
    "label-smoothing-on", origin="label smoothing (arXiv 1512.00567)", models=("language", "images")
)
def smoothing(scene: Scene) -> None:
    scene.loss = lambda logits, y: F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]).float(), y.flatten(), label_smoothing=0.1
    )


@benign(
    "dropout-raised", origin="mechanism: 0.1 to 0.25 when the data run short", models=("images",)
)
def dropout(scene: Scene) -> None:
    for layer in scene.model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.25


@benign(
    "decay-on-a-cosine",
    origin="DINO (arXiv 2104.14294): weight decay follows its own schedule",
    models=("language", "images"),
)
def decay(scene: Scene) -> None:
    start, bases = scene.step, [group["weight_decay"] for group in scene.optimizer.param_groups]

    def follow(scene: Scene) -> None:
        done = min(1.0, (scene.step - start) / 100)
        for group, base in zip(scene.optimizer.param_groups, bases, strict=True):
            group["weight_decay"] = base * (2.0 - math.cos(math.pi * done))

    scene.after_step = follow


@benign(
    "padding-ignored-by-the-loss",
    origin="every collate function: ignore_index",
    models=("language",),
)
def padding(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(scene.seed)

    def pad(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        length = torch.randint(8, x.shape[1] + 1, (len(x), 1), generator=generator)
        outside = torch.arange(x.shape[1]) >= length
        return x.masked_fill(outside, 0), y.masked_fill(outside, -100)

    scene.transform = pad


@benign(
    "augmentation-grows-stronger",
    origin="progressive learning (arXiv 2104.00298)",
    models=("images", "series"),
)
def augmentation(scene: Scene) -> None:
    generator = torch.Generator().manual_seed(scene.seed)
    start, full = scene.step, {"images": 0.4, "series": 0.05}[scene.kind]

    def augment(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        strength = full * min(1.0, (scene.step - start) / 60)
        return x + strength * torch.randn(x.shape, generator=generator), y

    scene.transform = augment


@benign("average-swapped-in-to-evaluate", origin="EMA evaluation: swapped in, and swapped back")
def average(scene: Scene) -> None:
    mean = copy.deepcopy(scene.model.state_dict())

    def keep(scene: Scene) -> None:
        own = scene.model.state_dict()
        for name, value in own.items():
            if value.is_floating_point():
                mean[name].lerp_(value, 0.02)
        if scene.step % 20 == 19:
            saved = copy.deepcopy(own)
            scene.model.load_state_dict(mean)
            scene.evaluate()
            scene.model.load_state_dict(saved)

    scene.after_step = keep


@benign(
    "clip-norm-halved",
    origin="mechanism: a tighter max_norm, as in most language model recipes",
    models=("language", "images"),
)
def clip(scene: Scene) -> None:
    scene.clip = 0.5


@benign(
    "activations-recomputed",
    origin="torch.utils.checkpoint switched on to save memory",
    models=("language",),
)
def recompute(scene: Scene) -> None:
    blocks = scene.model.get_submodule("blocks")
    for block in blocks.children():
        _recomputed(block)


def _recomputed(block: nn.Module) -> None:
    forward = block.forward

    def again(x: Tensor, src_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        return checkpoint(forward, x, src_mask=src_mask, is_causal=is_causal, use_reentrant=False)  # type: ignore[no-any-return]

    block.forward = again


def _scales(scene: Scene) -> None:
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)


@benign(
    "loss-scale-grows", origin="GradScaler: a doubling after each quiet interval", setup=_scales
)
def growth(scene: Scene) -> None:
    scene.scaler.set_growth_interval(15)
