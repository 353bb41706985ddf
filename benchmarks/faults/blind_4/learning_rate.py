"""Faults of the learning rate."""

from __future__ import annotations

import torch

from faults.scene import Scene, fault


@fault("range-test-never-switched-off", origin="mechanism: the sweep of a rate finder left running")
def range_test(scene: Scene) -> None:
    def after_step(scene: Scene) -> None:
        for group in scene.optimizer.param_groups:
            group["lr"] *= 1.07

    scene.after_step = after_step


def still_learning(scene: Scene) -> None:
    """A lower rate, so that at step 300 there is still much to learn."""
    for group in scene.optimizer.param_groups:
        group["lr"] /= {"images": 25, "series": 5}[scene.kind]


@fault("warm-up-built-anew-each-epoch", origin="mechanism: scheduler made inside the epoch loop",
       models=("images", "series"), setup=still_learning)  # fmt: skip
def warm_up(scene: Scene) -> None:
    """An epoch of ten steps never leaves a warm-up of fifty, and each one starts from the last."""

    def after_step(scene: Scene) -> None:
        if scene.step % 10 == 9:
            scene.scheduler = torch.optim.lr_scheduler.LinearLR(
                scene.optimizer, 0.05, total_iters=50
            )

    scene.scheduler = torch.optim.lr_scheduler.LinearLR(scene.optimizer, 0.05, total_iters=50)
    scene.after_step = after_step
