"""Held-out faults inside the model: masks, modes, statistics, cut graphs, starts."""

from __future__ import annotations

import types

from torch import Tensor, nn

from faults.scene import Scene, fault


@fault(
    "causal-mask-lost",
    origin="huggingface/transformers#48745, keras-team/keras#23038: positions see the future",
    models=("language",),
)
def unmasked(scene: Scene) -> None:
    """Each position sees its own answer, so the loss falls and the model is worth nothing."""

    def forward(self: nn.Module, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.position[: tokens.shape[1]]  # type: ignore
        for block in self.blocks:  # type: ignore[union-attr]
            x = block(x)
        return self.head(self.norm(x))  # type: ignore

    scene.model.forward = types.MethodType(forward, scene.model)


@fault(
    "keep-probability-taken-for-drop",
    origin="hassony2/kinetics_i3d_pytorch#6, huggingface/transformers#22767: 0.9 was to be kept",
    models=("images",),
)
def keep(scene: Scene) -> None:
    """Dropout removes nine values of ten instead of one."""
    for module in scene.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.9


@fault(
    "running-statistics-stand-still",
    origin="Cadene/pretrained-models.pytorch#5: momentum=0 keeps the old mean and variance",
    models=("images",),
)
def statistics(scene: Scene) -> None:
    """Weights move on and the running statistics do not; only evaluation suffers."""
    for module in scene.model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.0


@fault(
    "left-in-evaluation-mode",
    origin="wkentaro/pytorch-fcn#57, joeynmt/joeynmt#184: no train() after validation",
    models=("images",),
)
def evaluation(scene: Scene) -> None:
    """Normalisation trains against frozen statistics, and dropout is off."""
    scene.model.eval()


@fault(
    "graph-cut-by-a-round-trip",
    origin="mechanism: an activation passes through numpy or torch.tensor(x) and loses its graph",
    models=("images", "series"),
    when="start",
)
def cut(scene: Scene) -> None:
    """Everything below the cut keeps its random start."""
    if scene.kind == "images":
        scene.model[5].register_forward_hook(lambda m, i, o: o.detach())  # type: ignore
    else:
        scene.model.recurrent.register_forward_hook(  # type: ignore[union-attr]
            lambda m, i, o: (o[0].detach(), o[1])
        )


@fault(
    "all-filters-start-equal",
    origin="mechanism: a constant start gives every filter the same gradient for ever",
    models=("images",),
    when="start",
)
def equal(scene: Scene) -> None:
    """Each convolution has in effect one filter."""
    for module in scene.model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.constant_(module.weight, 0.05)
            nn.init.zeros_(module.bias)  # type: ignore[arg-type]
