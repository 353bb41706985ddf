"""Changes that belong to healthy training."""

from __future__ import annotations

import copy
import io
from typing import Any

import torch
from torch import Tensor

from faults.scene import Scene, benign


@benign("rate-warmed-again-for-twenty-steps", origin="practice: a short warm-up after a restart")
def warmed_again(scene: Scene) -> None:
    start = scene.step
    whole = [group["lr"] for group in scene.optimizer.param_groups]

    def set_rate(scene: Scene) -> None:
        share = min(1.0, 0.1 + 0.045 * (scene.step - start))
        for group, rate in zip(scene.optimizer.param_groups, whole, strict=True):
            group["lr"] = share * rate

    scene.scheduler = None
    scene.before_step = set_rate


@benign("batch-grows-by-four-each-ten-steps", origin="paper: Smith et al. 2018, arXiv 1711.00489")
def batch_grows(scene: Scene) -> None:
    def after_step(scene: Scene) -> None:
        if scene.step % 10 == 9 and scene.batch_size < 48:
            scene.batch_size += 4

    scene.after_step = after_step


def _small_pictures(scene: Scene) -> None:
    """The first phase sees a window of nine by nine."""

    def transform(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x[..., :9, :9], y

    scene.transform = transform


@benign("pictures-grow-to-full-size", origin="practice: progressive resizing, fastai and "
        "arXiv 2104.00298", models=("images",), setup=_small_pictures)  # fmt: skip
def pictures_grow(scene: Scene) -> None:
    scene.transform = lambda x, y: (x, y)


@benign("lower-layers-at-a-third-of-the-rate", origin="paper: discriminative rates of ULMFiT, "
        "arXiv 1801.06146")  # fmt: skip
def lower_layers(scene: Scene) -> None:
    """The first half of the parameters moves to a group of its own; its state goes along."""
    group = scene.optimizer.param_groups[0]
    half = len(group["params"]) // 2
    lower = {key: value for key, value in group.items() if key != "params"}
    lower |= {"params": group["params"][:half], "lr": group["lr"] / 3}
    group["params"] = group["params"][half:]
    scene.scheduler = None
    scene.optimizer.add_param_group(lower)


@benign("optimizer-rebuilt-with-its-state", origin="practice: another implementation (foreach) of "
        "the same optimizer takes over")  # fmt: skip
def rebuilt(scene: Scene) -> None:
    old = scene.optimizer
    same: Any = type(old)
    new: torch.optim.Optimizer = same(
        scene.model.parameters(), lr=old.param_groups[0]["lr"], foreach=True
    )
    kept = copy.deepcopy(old.state_dict())
    for group in kept["param_groups"]:
        group["foreach"] = True
    new.load_state_dict(kept)
    if scene.scheduler:
        scene.scheduler = torch.optim.lr_scheduler.LinearLR(new, 1.0, 0.5, total_iters=2000)
    scene.optimizer = new


@benign("checkpoint-and-copy-evaluated", origin="practice: every tenth step a checkpoint is "
        "written and a deep copy is evaluated")  # fmt: skip
def checkpoint(scene: Scene) -> None:
    def after_step(scene: Scene) -> None:
        if scene.step % 10 == 0:
            torch.save(
                {"model": scene.model.state_dict(), "optimizer": scene.optimizer.state_dict()},
                io.BytesIO(),
            )
            twin = copy.deepcopy(scene.model).eval()
            x, y = scene.batch()
            with torch.no_grad():
                scene.loss(twin(x), y)

    scene.after_step = after_step
