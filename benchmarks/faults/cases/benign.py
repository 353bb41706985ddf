"""Changes that belong to healthy training."""

import copy

import torch

from faults.scene import Scene, benign


@benign("rate-step", origin="MultiStepLR, gamma 0.1")
def rate_step(scene: Scene) -> None:
    scene.scheduler = None
    for group in scene.optimizer.param_groups:
        group["lr"] *= 0.1


@benign("batch-times-4", origin="batch-size schedules (arXiv 1711.00489)")
def batch(scene: Scene) -> None:
    scene.batch_size *= 4


def _evaluates(scene: Scene) -> None:
    scene.evaluate_every = 25


@benign("evaluation-between", origin="every training loop", setup=_evaluates)
def evaluation(scene: Scene) -> None:
    scene.evaluate()


def _accumulates(scene: Scene) -> None:
    scene.accumulate = 4


@benign("accumulation", origin="gradient accumulation over four calls", setup=_accumulates)
def accumulation(scene: Scene) -> None:
    scene.evaluate()


@benign("resume", origin="state_dict saved and loaded in one process")
def resume(scene: Scene) -> None:
    model, optimizer = copy.deepcopy((scene.model.state_dict(), scene.optimizer.state_dict()))
    scene.model.load_state_dict(model)
    scene.optimizer.load_state_dict(optimizer)


def _half(scene: Scene) -> None:
    scene.autocast = torch.float16
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=40)


@benign("loss-scale-backoff", origin="GradScaler: one overflow, one halving", models=("language",),
        setup=_half)  # fmt: skip
def backoff(scene: Scene) -> None:
    def once(scene: Scene) -> None:
        scene.after_backward = None
        next(scene.model.parameters()).grad.fill_(float("inf"))  # type: ignore[union-attr]

    scene.after_backward = once
