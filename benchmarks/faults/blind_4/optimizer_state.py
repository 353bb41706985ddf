"""Faults of the optimizer and of its state."""

from __future__ import annotations

import torch

from faults.scene import Scene, fault


@fault(
    "ascent-never-taken-back",
    origin="mechanism: SAM whose second step is skipped, juntang-zhuang/GSAM#2",
    models=("language", "series"),
)
def ascent(scene: Scene) -> None:
    """Sharpness-aware training climbs by 0.05 along the gradient, and does not return."""

    def after_step(scene: Scene) -> None:
        gradients = [p.grad for p in scene.model.parameters() if p.grad is not None]
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
        with torch.no_grad():
            for parameter in scene.model.parameters():
                if parameter.grad is not None:
                    parameter.add_(parameter.grad / (norm + 1e-12), alpha=0.05)

    scene.after_step = after_step


@fault("flat-buffer-off-by-one", origin="deepspeedai/DeepSpeed#848: misaligned gradients")
def off_by_one(scene: Scene) -> None:
    """Gradients are copied out of their flat buffer one place too far; their norm stays."""

    def after_backward(scene: Scene) -> None:
        gradients = [p.grad for p in scene.model.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients]).roll(1)
        parts = flat.split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    scene.after_backward = after_backward
