"""Optimizers that torch does not have, and the schedules of learning rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import lr_scheduler

Schedule = Callable[[torch.optim.Optimizer, int], Any]


class Lion(torch.optim.Optimizer):
    """Moves every weight by the learning rate, in the direction of a blend of two averages."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                average = self.state[parameter].setdefault("exp_avg", torch.zeros_like(parameter))
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                direction = average.lerp(parameter.grad, 0.1).sign_()
                parameter.add_(direction, alpha=-group["lr"])
                average.lerp_(parameter.grad, 0.01)


class ScheduleFree(torch.optim.Optimizer):
    """SGD or Adam that averages its iterates; `train` and `eval` switch between two sets of weights.

    The weights are y in training and the average x in evaluation, with y = (1 - β) z + β x.
    """

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, adaptive: bool = True, warmup: int = 100,
    ) -> None:  # fmt: skip
        super().__init__(
            parameters, {"lr": lr, "beta": 0.9, "k": 0, "train_mode": True, "weight_sum": 0.0}
        )
        self._adaptive, self._warmup = adaptive, warmup

    @torch.no_grad()
    def eval(self) -> None:
        for group in self.param_groups:
            if group["train_mode"]:
                for p in group["params"]:
                    if "z" in self.state[p]:
                        p.lerp_(self.state[p]["z"], 1 - 1 / group["beta"])
                group["train_mode"] = False

    @torch.no_grad()
    def train(self) -> None:
        for group in self.param_groups:
            if not group["train_mode"]:
                for p in group["params"]:
                    if "z" in self.state[p]:
                        p.lerp_(self.state[p]["z"], 1 - group["beta"])
                group["train_mode"] = True

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            k = group["k"]
            rate = group["lr"] * min(1.0, (k + 1) / self._warmup)
            group["weight_sum"] += rate**2
            share = rate**2 / group["weight_sum"]
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, p.grad, rate, share, group["beta"], k)
            group["k"] = k + 1

    def _move(
        self, p: Tensor, gradient: Tensor, rate: float, share: float, beta: float, k: int
    ) -> None:
        state = self.state[p]
        z = state.setdefault("z", p.clone())
        if self._adaptive:
            squares = state.setdefault("exp_avg_sq", torch.zeros_like(p))
            squares.lerp_(gradient.square(), 0.001)
            gradient = gradient / ((squares / (1 - 0.999 ** (k + 1))).sqrt() + 1e-8)
        p.lerp_(z, share)
        p.add_(gradient, alpha=rate * (beta * (1 - share) - 1))
        z.sub_(gradient, alpha=rate)


def _lambda(function: Callable[[float], float]) -> Schedule:
    """A factor of the share of the run that has passed."""
    return lambda optimizer, steps: lr_scheduler.LambdaLR(
        optimizer, lambda step: function(min(step / steps, 1.0))
    )


def _trapezoid(share: float) -> float:
    return min(1.0, share / 0.05, (1 - share) / 0.2)


def _one_minus_root(share: float) -> float:
    return min(1.0, share / 0.02) if share < 0.75 else 1 - math.sqrt((share - 0.75) / 0.25)


SCHEDULES: dict[str, Schedule | None] = {
    "constant": None,
    "cosine": lambda o, steps: lr_scheduler.CosineAnnealingLR(o, steps),
    "cosine to a tenth": _lambda(lambda s: 0.1 + 0.45 * (1 + math.cos(math.pi * s))),
    "warm-up and cosine": _lambda(
        lambda s: s / 0.05 if s < 0.05 else 0.5 * (1 + math.cos(math.pi * (s - 0.05) / 0.95))
    ),
    "one cycle": lambda o, steps: lr_scheduler.OneCycleLR(
        o, o.param_groups[0]["lr"], steps, cycle_momentum="momentum" in o.defaults
    ),
    "linear to zero": lambda o, steps: lr_scheduler.LinearLR(o, 1.0, 0.0, steps),
    "polynomial": lambda o, steps: lr_scheduler.PolynomialLR(o, steps, 2.0),
    "trapezoid": _lambda(_trapezoid),
    "warm-up, stable, decay": _lambda(_one_minus_root),
    "restarts": lambda o, steps: lr_scheduler.CosineAnnealingWarmRestarts(o, steps // 4),
    "doubling restarts": lambda o, steps: lr_scheduler.CosineAnnealingWarmRestarts(
        o, steps // 7, 2
    ),
    "steps": lambda o, steps: lr_scheduler.MultiStepLR(o, [steps // 2, steps * 3 // 4], 0.1),
    "exponential": lambda o, steps: lr_scheduler.ExponentialLR(o, 0.01 ** (1 / steps)),
    "cyclic": lambda o, steps: lr_scheduler.CyclicLR(
        o, 0.1 * o.param_groups[0]["lr"], o.param_groups[0]["lr"], steps // 10,
        cycle_momentum=False,
    ),
    "inverse root": _lambda(lambda s: min(s / 0.04, math.sqrt(0.04 / max(s, 1e-9)))),
}  # fmt: skip

OPTIMIZERS: dict[str, Callable[[Iterable[Tensor], float], torch.optim.Optimizer]] = {
    "SGD": lambda p, lr: torch.optim.SGD(p, lr),
    "momentum": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9, weight_decay=1e-4),
    "nesterov": lambda p, lr: torch.optim.SGD(
        p, lr, momentum=0.9, nesterov=True, weight_decay=5e-4
    ),
    "Adam": lambda p, lr: torch.optim.Adam(p, lr),
    "AdamW": lambda p, lr: torch.optim.AdamW(p, lr, betas=(0.9, 0.95), weight_decay=0.1),
    "AdamW, default": lambda p, lr: torch.optim.AdamW(p, lr),
    "NAdam": lambda p, lr: torch.optim.NAdam(p, lr),
    "RMSprop": lambda p, lr: torch.optim.RMSprop(p, lr),
    "Adagrad": lambda p, lr: torch.optim.Adagrad(p, lr),
    "Lion": lambda p, lr: Lion(p, lr, 0.01),
    "schedule-free AdamW": lambda p, lr: ScheduleFree(p, lr),
    "schedule-free SGD": lambda p, lr: ScheduleFree(p, lr, adaptive=False),
}
