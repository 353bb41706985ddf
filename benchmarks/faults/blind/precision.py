"""Numbers that no longer fit the format they are kept in."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from faults.scene import Scene, fault


@fault(
    "second-moment-underflows-in-half",
    origin="pytorch/pytorch#147437: squares of small gradients are zero in float16",
    models=("series",),
)
def underflow(scene: Scene) -> None:
    def store(scene: Scene) -> None:
        for state in scene.optimizer.state.values():
            state["exp_avg_sq"].copy_(state["exp_avg_sq"].half())

    scene.after_step = store


def _middle(scene: Scene) -> list[nn.Module]:
    names = {
        "language": ("blocks.0", "blocks.1"),
        "images": ("3", "6"),
        "series": ("gate", "value"),
    }
    return [scene.model.get_submodule(name) for name in names[scene.kind]]


def _largest(scene: Scene, layers: list[nn.Module]) -> dict[nn.Module, float]:
    found: dict[nn.Module, float] = {}

    def measure(layer: nn.Module, _inputs: object, output: Tensor) -> None:
        found[layer] = float(output.abs().max())

    hooks = [layer.register_forward_hook(measure) for layer in layers]
    with torch.no_grad():
        scene.model(scene.batch()[0])
    for hook in hooks:
        hook.remove()
    return found


@fault(
    "stale-scale-saturates-float8",
    origin="NVIDIA/TransformerEngine#1047: an old scale is kept, values above it are cut off",
)
def saturate(scene: Scene) -> None:
    layers = _middle(scene)
    largest = _largest(scene, layers)

    def cast(layer: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        scale = 0.15 * largest[layer] / 448.0
        short = (output / scale).clamp(-448, 448).to(torch.float8_e4m3fn).to(output.dtype) * scale
        return output + (short - output).detach()

    for layer in layers:
        layer.register_forward_hook(cast)


@fault(
    "top-one-percent-without-residual",
    origin="Deep Gradient Compression (arXiv 1712.01887): what is not sent must be kept",
    models=("language",),
)
def compress(scene: Scene) -> None:
    def keep_largest(scene: Scene) -> None:
        for parameter in scene.model.parameters():
            if parameter.grad is not None:
                size = parameter.grad.abs().flatten()
                least = size.topk(max(1, len(size) // 100)).values[-1]
                parameter.grad.mul_(parameter.grad.abs() >= least)

    scene.after_backward = keep_largest
