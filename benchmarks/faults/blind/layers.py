"""Layers that compute something else than they did."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from faults.scene import Scene, fault


@fault(
    "gate-order-of-another-framework",
    origin="keras-team/keras#8720: GRU gates are r, z, n in PyTorch and z, r, n in Keras",
    models=("series",),
)
def gates(scene: Scene) -> None:
    recurrent = scene.model.get_submodule("recurrent")
    with torch.no_grad():
        for parameter in recurrent.parameters():
            reset, update, new = parameter.chunk(3)
            parameter.copy_(torch.cat([update, reset, new]))


@fault(
    "hidden-state-carried-between-batches",
    origin="tensorflow/tensorflow#40067: a stateful recurrent layer over shuffled sequences",
    models=("series",),
)
def carried(scene: Scene) -> None:
    recurrent = scene.model.get_submodule("recurrent")
    forward = recurrent.forward
    last: list[Tensor] = []

    def stateful(x: Tensor, state: Tensor | None = None) -> Any:
        start = last[0] if last and last[0].shape[1] == len(x) else state
        output, end = forward(x, start)
        last[:] = [end.detach()]
        return output, end

    recurrent.forward = stateful


@fault(
    "batch-norm-momentum-of-another-framework",
    origin="pytorch/vision#8250: 0.99 means 0.01 here, so only the last batch is remembered",
    models=("images",),
)
def momentum(scene: Scene) -> None:
    for layer in scene.model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 0.99


def _in_parts(layer: nn.Module, size: int) -> None:
    forward = layer.forward
    layer.forward = lambda x: torch.cat([forward(part) for part in x.split(size)])


@fault(
    "statistics-of-two-samples",
    origin="mechanism: eight devices with two samples each, batch norm not synchronised",
    models=("images",),
)
def small_statistics(scene: Scene) -> None:
    for layer in scene.model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            _in_parts(layer, 2)


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Tensor:
        return -gradients[0]


def _reversed(x: Tensor) -> Tensor:
    return _Reverse.apply(x)  # type: ignore[no-any-return, no-untyped-call]


@fault(
    "reversal-layer-left-in",
    origin="domain-adversarial training (arXiv 1409.7495): its reversed gradient stays on",
)
def reversal(scene: Scene) -> None:
    name = {"language": "blocks.0", "images": "5", "series": "recurrent"}[scene.kind]

    def reverse(_layer: nn.Module, _inputs: object, output: Any) -> Any:
        if isinstance(output, tuple):
            return _reversed(output[0]), *output[1:]
        return _reversed(output)

    scene.model.get_submodule(name).register_forward_hook(reverse)


@fault(
    "residual-lost",
    origin="mechanism: x = block(x) for x = x + block(x) after a rewrite of one block",
    models=("language",),
)
def residual(scene: Scene) -> None:
    block = scene.model.get_submodule("blocks.1")
    block.register_forward_hook(lambda _, inputs, output: output - inputs[0])
