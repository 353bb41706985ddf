"""What is healthy between ranks."""

from __future__ import annotations

import contextlib

import torch
import torch.distributed as dist

from faults.scene import Scene, benign

MODELS = ("series", "images")


@benign("evaluation-on-the-first-rank", models=MODELS, origin=(
    "common practice: rank 0 evaluates the bare model while the others wait"
))  # fmt: skip
def evaluate(scene: Scene) -> None:
    wrapped = scene.model.module

    def look(_: Scene) -> None:
        if dist.get_rank() == 0 and scene.step % 20 == 0:
            wrapped.eval()
            with torch.no_grad():
                wrapped(scene.batch()[0])
            wrapped.train()

    scene.after_step = look


@benign("accumulation-without-reduction-in-between", models=MODELS, origin=(
    "DDP documentation: `no_sync` for all but the last of the accumulated batches"
))  # fmt: skip
def accumulate(scene: Scene) -> None:
    model, plain = scene.model, scene.train_step
    scene.accumulate = 2

    def step(batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        first = (scene.step + 1) % 2
        with model.no_sync() if first else contextlib.nullcontext():
            return plain(batch)

    scene.train_step = step  # type: ignore[method-assign]
