"""Numbers that leave their range, and optimizer state that belongs elsewhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from faults.scene import Scene, fault


def _gradients_in_half(scene: Scene) -> None:
    for parameter in scene.model.parameters():
        if parameter.grad is not None:
            parameter.grad = parameter.grad.half().float()


def scaled_half_gradients(scene: Scene) -> None:
    """Gradients pass through half precision under a scale that rarely grows."""
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=2000)
    scene.after_backward = _gradients_in_half


@fault(
    "scale-grows-after-every-good-step",
    origin="github.com/NVIDIA/apex/issues/318 (one skipped step after another); the mechanism is a "
    "growth interval of one step, so that every second step overflows and is thrown away",
    models=("images",),
    when="start",
    setup=scaled_half_gradients,
)
def grow_always(scene: Scene) -> None:
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=1)


@fault(
    "sentence-of-nothing-but-padding",
    origin="github.com/pytorch/pytorch/issues/41508 and /issues/40932: one row whose keys are all "
    "masked makes NaN of every gradient, where attention weights are asked for",
    models=("language",),
)
def mask_everything(scene: Scene) -> None:
    empty = torch.zeros(scene.batch_size, 16, dtype=torch.bool)

    def keep_weights(attention: nn.MultiheadAttention) -> None:
        forward = attention.forward
        attention.forward = lambda *args, **kwargs: forward(
            *args, **{**kwargs, "need_weights": True}
        )

    def mask(_block: nn.Module, args: Any, kwargs: Any) -> Any:
        if args[0].shape[:2] != empty.shape:  # other data than the training batches
            return None
        return args, {**kwargs, "src_key_padding_mask": torch.where(empty, -torch.inf, 0.0)}

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        empty.zero_()
        if scene.step % 20 == 7:
            empty[3] = True
        return x, torch.where(empty, -100, y)

    for block in scene.model.blocks:
        keep_weights(block.self_attn)
        block.register_forward_pre_hook(mask, with_kwargs=True)
    scene.transform = transform


@fault(
    "second-beta-taken-for-its-complement",
    origin="github.com/mila-iqia/blocks/issues/1159: one side means beta, the other one minus beta, "
    "so that the second moment forgets at once",
    models=("language", "series"),
)
def invert_beta(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        first, second = group["betas"]
        group["betas"] = (first, 1 - second)


@fault(
    "frozen-with-its-last-gradient-left-in",
    origin="github.com/facebookresearch/fairseq/issues/4702: parameters with requires_grad off are "
    "still updated; their last gradient stays and only trainable ones are cleared",
    models=("language",),
)
def freeze_with_gradient(scene: Scene) -> None:
    for parameter in scene.model.blocks[0].parameters():
        parameter.requires_grad_(False)

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        for parameter in scene.model.parameters():
            if parameter.requires_grad:
                parameter.grad = None
        return x, y

    scene.zero_grad = False
    scene.transform = transform
