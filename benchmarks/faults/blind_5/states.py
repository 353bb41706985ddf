"""Optimizer state that is lost, and updates that never reach the weight."""

from __future__ import annotations

import torch
from torch import Tensor

from faults.scene import Scene, fault


@fault(
    "moments-begin-anew-each-step",
    origin="github.com/raskr/rust-autograd/issues/16 and "
    "alan-turing-institute/deepsensor/issues/47: Adam is built inside the loop, so that both "
    "moments are zero before every update",
    models=("series",),
)
def begin_anew(scene: Scene) -> None:
    scene.before_step = lambda scene: scene.optimizer.state.clear()


@fault(
    "transposed-weights-updated-in-a-copy",
    origin="elanapearl.github.io/blog/2025/the-bug-that-taught-me-pytorch: on one backend addcmul_ "
    "and addcdiv_ write into a contiguous copy, so that a transposed weight keeps its value and "
    "its second moment",
    models=("language", "series"),
    when="start",
)
def in_a_copy(scene: Scene) -> None:
    words = ("self_attn", "linear") if scene.kind == "language" else ("recurrent.weight",)
    named = scene.model.named_parameters()
    hit = [p for name, p in named if p.ndim == 2 and any(word in name for word in words)]
    kept: list[tuple[Tensor, Tensor]] = []

    def keep(scene: Scene) -> None:
        second = {p: scene.optimizer.state[p].get("exp_avg_sq") for p in hit}
        kept[:] = [
            (p.detach().clone(), torch.zeros_like(p) if seen is None else seen.clone())
            for p, seen in second.items()
        ]

    @torch.no_grad()
    def restore(scene: Scene) -> None:
        for parameter, (weight, second) in zip(hit, kept, strict=True):
            parameter.copy_(weight)
            scene.optimizer.state[parameter]["exp_avg_sq"].copy_(second)

    scene.before_step, scene.after_step = keep, restore
