"""A layer does something else than its author thinks."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from faults.blind_8.pace import unhurried
from faults.scene import Scene, fault


@fault(
    "left-in-eval-mode",
    origin="fartashf/vsepp#4, huggingface/lerobot#3668: train() is not called again after "
    "validation",
    models=("images",),
)
def left_in_eval(scene: Scene) -> None:
    scene.evaluate()
    scene.model.eval()


@fault(
    "replaced-layer-unknown-to-the-optimizer",
    origin="microsoft/nni#4521: layers are replaced by copies while the optimizer keeps the old "
    "ones",
    models=("language", "images"),
    setup=unhurried,
)
def replaced_layer(scene: Scene) -> None:
    name = {"language": "head", "images": "12"}[scene.kind]
    scene.model.set_submodule(name, copy.deepcopy(scene.model.get_submodule(name)))


@fault(
    "causal-mask-dropped",
    origin="keras-team/keras#23038: another attention path silently drops the causal mask",
    models=("language",),
)
def causal_mask_dropped(scene: Scene) -> None:
    for block in scene.model.blocks:  # type: ignore[union-attr]
        forward = block.forward

        def unmasked(x: Tensor, forward: Any = forward, **_: Any) -> Tensor:
            result: Tensor = forward(x)
            return result

        block.forward = unmasked
