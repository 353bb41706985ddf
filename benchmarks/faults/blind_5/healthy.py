"""Changes that belong to healthy training."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor

from faults.scene import Scene, benign


@benign(
    "samples-written-between-steps",
    origin="nanoGPT and Lightning callbacks: every ten steps the model continues a few prompts in "
    "evaluation mode, one word at a time",
    models=("language", "series"),
)
def write_samples(scene: Scene) -> None:
    prompt = scene.batch()[0][:3, :2]

    @torch.no_grad()
    def sample(scene: Scene) -> None:
        if scene.step % 10:
            return
        scene.model.eval()
        text = prompt
        for _ in range(8):
            last = scene.model(text)[:, -1:]
            text = torch.cat([text, last.argmax(-1) if scene.kind == "language" else last], 1)
        scene.model.train()

    scene.after_step = sample


@benign(
    "every-class-twice-a-batch",
    origin="a class-balanced batch sampler (pytorch-metric-learning's MPerClassSampler)",
    models=("images",),
)
def balanced(scene: Scene) -> None:
    draw = scene.batch

    def batch() -> tuple[Tensor, Tensor]:
        scene.batch_size = 128
        x, y = draw()
        scene.batch_size = 16
        chosen = torch.cat([(y == label).nonzero()[:2, 0] for label in range(8)])
        return x[chosen], y[chosen]

    scene.batch = batch


@benign(
    "second-moment-forgets-faster",
    origin="beta2 lowered from 0.999 to 0.98, as fairseq's and PaLM's recipes have it",
    models=("language", "series"),
)
def forget_faster(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["betas"] = (0.9, 0.98)


@benign(
    "nesterov-switched-on",
    origin="torch.optim.SGD(nesterov=True), the default of most image recipes",
    models=("images",),
)
def nesterov(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["nesterov"] = True


@benign(
    "statistics-refreshed-on-training-data",
    origin="precise batch normalisation (arXiv 2105.07576; fvcore's update_bn_stats): every 25 "
    "steps the last ten batches pass again in training mode without gradients",
    models=("images",),
)
def refresh(scene: Scene) -> None:
    seen: deque[Tensor] = deque(maxlen=10)

    def remember(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(x)
        return x, y

    @torch.no_grad()
    def pass_batches(scene: Scene) -> None:
        if (scene.step + 1) % 25 == 0:
            for x in seen:
                scene.model(x)

    scene.transform, scene.after_step = remember, pass_batches


@benign(
    "same-batch-in-four-parts",
    origin="a smaller card: micro-batches of 4 rows, four of them a step (Accelerate's "
    "find_executable_batch_size with accumulation)",
    models=("language", "series"),
)
def four_parts(scene: Scene) -> None:
    scene.batch_size, scene.accumulate = 4, 4
