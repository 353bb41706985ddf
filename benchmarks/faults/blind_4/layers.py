"""Faults of layers and of their weights."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from faults.scene import Scene, fault


@fault(
    "embedding-renormed-at-every-lookup",
    origin="akanimax/pro_gan_pytorch#37, pytorch/pytorch#26596",
    models=("language",),
)
def renormed(scene: Scene) -> None:
    scene.model.embedding.max_norm = 1.0  # type: ignore[union-attr]


@fault(
    "relu-after-the-last-layer",
    origin="mechanism: an output that cannot be negative",
    models=("language", "series"),
)
def relu(scene: Scene) -> None:
    *_, last = (m for m in scene.model.modules() if isinstance(m, nn.Linear))
    last.register_forward_hook(lambda _module, _inputs, output: output.relu())


@fault(
    "folded-for-export-in-place",
    origin="mechanism: fuse() on the live model, ultralytics/yolov5#4034",
    models=("images",),
)
def folded(scene: Scene) -> None:
    """Every ten steps the norms are folded into the convolutions that go on training."""
    layers = list(scene.model.children())

    def after_step(scene: Scene) -> None:
        if scene.step % 10:
            return
        for convolution, norm in pairwise(layers):
            if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                assert norm.running_var is not None
                factor = norm.weight / (norm.running_var + norm.eps).sqrt()
                with torch.no_grad():
                    convolution.weight.mul_(factor[:, None, None, None])

    scene.after_step = after_step
