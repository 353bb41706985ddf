"""Faults of precision."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from faults.blind_4.learning_rate import still_learning
from faults.scene import Scene, fault


@fault(
    "rounded-without-straight-through",
    origin="Justin-Tan/generative-compression#27, pytorch/ao#4806",
    models=("images", "series"),
    setup=still_learning,
)
def rounded(scene: Scene) -> None:
    """The gradient of a rounding is zero, so nothing below the layer learns any more."""
    name = {"images": "5", "series": "recurrent"}[scene.kind]

    def on_the_grid(value: Tensor) -> Tensor:
        return torch.round(value * 16) / 16

    def quantise(_module: nn.Module, _inputs: object, output: object) -> object:
        if isinstance(output, tuple):
            return (on_the_grid(output[0]), *output[1:])
        assert isinstance(output, Tensor)
        return on_the_grid(output)

    scene.model.get_submodule(name).register_forward_hook(quantise)


@fault(
    "second-moments-on-a-linear-grid",
    origin="paper: the zero-point problem of arXiv 2309.01507",
    models=("series",),
)
def linear_grid(scene: Scene) -> None:
    """Eight bits spaced evenly up to the largest entry turn the small ones into zero."""

    def after_step(scene: Scene) -> None:
        for state in scene.optimizer.state.values():
            unit = (state["exp_avg_sq"].max() / 255).clamp(min=1e-30)
            state["exp_avg_sq"].copy_((state["exp_avg_sq"] / unit).round() * unit)

    scene.after_step = after_step
