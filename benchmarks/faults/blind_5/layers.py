"""Weights that a checkpoint gives to the wrong place or not at all, and a layer out of the graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from faults.models import KINDS
from faults.scene import Scene, fault


@fault(
    "nothing-loaded-and-no-complaint",
    origin="github.com/pytorch/examples/issues/1029 and pytorch/pytorch/issues/141256: the keys of "
    "the checkpoint carry a prefix, strict=False swallows the mismatch, and the run goes on from "
    "fresh weights",
)
def nothing_loaded(scene: Scene) -> None:
    saved = {f"model.{name}": value for name, value in scene.model.state_dict().items()}
    fresh, _, _ = KINDS[scene.kind].build()
    fresh.load_state_dict(saved, strict=False)
    scene.model.load_state_dict(fresh.state_dict())


@fault(
    "norm-gains-shifted-by-one",
    origin="github.com/utensils/mold/pull/1078, vllm-project/vllm/pull/31464 and "
    "pytorch/executorch/pull/19901: a converter adds the 1 of Gemma's (1 + w) to gains that "
    "already hold it",
    models=("language",),
)
@torch.no_grad()
def shifted(scene: Scene) -> None:
    for module in scene.model.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.add_(1.0)


@fault(
    "untied-head-tied-on-loading",
    origin="github.com/NVIDIA-NeMo/Automodel/pull/2942 and vllm-project/vllm/pull/51665: the loader"
    " ties the head to the embedding though the model was trained untied, and drops the head",
    models=("language",),
)
def tied(scene: Scene) -> None:
    model: Any = scene.model
    model.head.weight = model.embedding.weight


@fault(
    "first-layer-checkpointed-out-of-the-graph",
    origin="github.com/pytorch/pytorch/issues/112397 and Lyken17/pytorch-memonger/issues/4: "
    "reentrant checkpointing of a layer whose input needs no gradient gives its weights none",
    models=("images", "series"),
    when="start",
)
def out_of_the_graph(scene: Scene) -> None:
    model: Any = scene.model
    first = model[0] if scene.kind == "images" else model.recurrent
    forward = first.forward
    first.forward = lambda x: checkpoint(forward, x, use_reentrant=True)
