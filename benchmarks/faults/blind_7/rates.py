"""Learning rates that belong to another optimizer, another group or another recipe."""

from __future__ import annotations

import torch

from faults.scene import Scene, fault


def biases_in_a_group(scene: Scene) -> None:
    """Biases get their own group, as many detection recipes do."""
    group = scene.optimizer.param_groups[0]
    biases = [p for p in group["params"] if p.ndim == 1]
    group["params"] = [p for p in group["params"] if p.ndim > 1]
    scene.optimizer.add_param_group({"params": biases})


@fault(
    "bias-warm-up-rate-meant-for-sgd",
    origin="github.com/ultralytics/ultralytics/pull/23842 and /pull/23244: the warm-up rate of 0.1 "
    "for biases is meant for SGD, and must not be used with the Adam family",
    models=("series",),
    setup=biases_in_a_group,
)
def warm_biases(scene: Scene) -> None:
    biases = scene.optimizer.param_groups[1]
    first, last, begin = 0.1, biases["lr"], scene.step

    def follow(scene: Scene) -> None:
        done = min(1.0, (scene.step + 1 - begin) / 100)
        biases["lr"] = first + done * (last - first)

    biases["lr"] = first
    scene.after_step = follow


@fault(
    "adam-at-the-rate-of-sgd",
    origin="github.com/ultralytics/ultralytics/pull/23244: AdamW fails to converge at the default "
    "rate that was chosen for SGD",
    models=("images",),
)
def exchange_optimizer(scene: Scene) -> None:
    group = scene.optimizer.param_groups[0]
    scene.optimizer = torch.optim.AdamW(
        scene.model.parameters(), lr=group["lr"], weight_decay=group["weight_decay"]
    )


@fault(
    "one-cycle-climbs-to-a-tutorial-peak",
    origin="github.com/wandb/senpai/pull/3131: a one-cycle schedule trains well on its way up and "
    "breaks as the rate nears a peak that the model does not bear",
    models=("language", "series"),
)
def climb(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group.pop("initial_lr", None)
    scene.scheduler = torch.optim.lr_scheduler.OneCycleLR(
        scene.optimizer, max_lr=0.1, total_steps=300, pct_start=0.3, cycle_momentum=False
    )
