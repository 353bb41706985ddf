"""What a checkpoint should have carried over is missing or in the wrong place."""

from __future__ import annotations

from torch import nn

from faults.scene import Scene, fault


@fault(
    "resumed-without-optimizer-state",
    origin="EvolvingLMMs-Lab/OneVision-Encoder#65: the checkpoint lacks optimizer.state_dict()",
    models=("series",),
)
def without_optimizer_state(scene: Scene) -> None:
    scene.optimizer.state.clear()


@fault(
    "layer-skipped-by-loose-loading",
    origin="rosinality/stylegan2-pytorch#26: load_state_dict(strict=False) leaves a layer at "
    "random",
)
def layer_skipped(scene: Scene) -> None:
    names = {"language": ["head"], "images": ["3", "4"], "series": ["gate", "value"]}[scene.kind]
    for name in names:
        layer = scene.model.get_submodule(name)
        assert isinstance(layer, nn.Linear | nn.Conv2d | nn.BatchNorm2d)
        layer.reset_parameters()
