"""Slips of code."""

import torch

from faults.scene import Scene, fault


@fault("zero-grad-missing", origin="TrainCheck (OSDI 25): missing zero_grad", when="start")
def no_zero_grad(scene: Scene) -> None:
    scene.zero_grad = False


@fault("zero-grad-lost", origin="mechanism: zero_grad moved into a branch")
def zero_grad_lost(scene: Scene) -> None:
    scene.zero_grad = False


@fault("eval-left-on", origin="mechanism: model.eval() for validation, no model.train() after it",
       models=("images",))  # fmt: skip
def eval_left_on(scene: Scene) -> None:
    scene.model.eval()


@fault("step-missing", origin="mechanism: optimizer.step() indented into a branch")
def step_missing(scene: Scene) -> None:
    scene.do_step = False


@fault(
    "average-written-back", origin="mechanism: averaged weights swapped in for evaluation and kept"
)
def average(scene: Scene) -> None:
    with torch.no_grad():
        for p in scene.model.parameters():
            p.mul_(0.7)


@fault("loss-sum-for-mean", origin="mechanism: reduction='sum' after a refactoring")
def loss_sum(scene: Scene) -> None:
    usual = scene.loss
    scene.loss = lambda a, b: usual(a, b) * len(b)


@fault("clip-to-nothing", origin="mechanism: max_norm=1e-6 meant as eps", models=("images",))
def clip_to_nothing(scene: Scene) -> None:
    scene.clip = 1e-6
