"""Faults of the learning rate and of what the optimizer remembers."""

from __future__ import annotations

import torch
from torch import nn

from faults.scene import Scene, fault

_HORIZON_STEPS = 3000
_WARM_STEPS = 50


def _linear_to_zero(scene: Scene) -> None:
    """A linear schedule to zero, far from its end when the case begins."""
    scene.scheduler = torch.optim.lr_scheduler.LambdaLR(
        scene.optimizer,
        lambda step: min(1.0, (step + 1) / _WARM_STEPS) * (1 - step / _HORIZON_STEPS),
    )


@fault(
    "schedule-runs-below-zero",
    origin="huggingface/transformers issue 132: the total of warmup_linear was counted in examples "
    "and not in features, the schedule ran past its end and the rate became negative",
    setup=_linear_to_zero,
)
def below_zero(scene: Scene) -> None:
    """The total is taken from a shorter data set, and nothing stops the line at zero."""
    scene.scheduler.lr_lambdas[0] = lambda step: 1 - step / 270


def _depth_of(name: str) -> int:
    """How many stages lie between a parameter of the language model and its loss."""
    if name.startswith("blocks.0"):
        return 2
    if name.startswith("blocks.1"):
        return 1
    return 3 if name.startswith(("embedding", "position")) else 0


def _layer_decay(scene: Scene) -> None:
    """One group per depth, each with two fifths of the rate of the one above it."""
    (whole,) = scene.optimizer.param_groups
    groups = []
    for depth in range(4):
        chosen = [p for name, p in scene.model.named_parameters() if _depth_of(name) == depth]
        rate = 2e-3 * 0.4**depth
        groups.append({**whole, "params": chosen, "lr": rate, "initial_lr": rate})
    scene.optimizer.param_groups[:] = groups
    scene.scheduler = torch.optim.lr_scheduler.LambdaLR(
        scene.optimizer, lambda step: min(1.0, (step + 1) / _WARM_STEPS)
    )


@fault(
    "layer-decay-divided",
    origin="layer-wise rate decay with its depth counted wrongly: google-research/electra issues "
    "51 and 64; here the rate is divided by the decay where it should be multiplied",
    models=("language",),
    setup=_layer_decay,
)
def layer_decay_divided(scene: Scene) -> None:
    """The lowest layers, which should move least, get sixteen times the base rate."""
    scene.scheduler.base_lrs = [2e-3 / 0.4**depth for depth in range(4)]


def _decoupled_decay(scene: Scene) -> None:
    """Decay of 0.1 that acts on the weights alone, as in AdamW."""
    for group in scene.optimizer.param_groups:
        group["weight_decay"] = 0.1
        group["decoupled_weight_decay"] = True


@fault(
    "decay-goes-through-the-moments",
    origin="Loshchilov and Hutter 2019 (arXiv 1711.05101): the decay of AdamW handed over to Adam, "
    "where it is added to the gradient and divided by the second moment",
    models=("language", "series"),
    setup=_decoupled_decay,
)
def coupled_decay(scene: Scene) -> None:
    """The same number now pulls on every weight as hard as a gradient does."""
    for group in scene.optimizer.param_groups:
        group["decoupled_weight_decay"] = False


class _PrivateNoise:
    """Adds Gaussian noise to clipped gradients, as training with differential privacy does."""

    def __init__(self, deviation: float) -> None:
        self.deviation = deviation
        self.generator = torch.Generator().manual_seed(11)

    def __call__(self, scene: Scene) -> None:
        for parameter in scene.model.parameters():
            if parameter.grad is not None:
                noise = torch.randn(parameter.shape, generator=self.generator)
                parameter.grad.add_(noise, alpha=self.deviation)


def _private(scene: Scene) -> None:
    """Noise of 0.02 clip norms, divided by the batch as it should be."""
    scene.before_step = _PrivateNoise(0.02 / scene.batch_size)


@fault(
    "privacy-noise-not-divided",
    origin="meta-pytorch/opacus issues 200 and 753: gradients are means over the batch, and the "
    "noise must be divided by the batch size too",
    models=("images", "series"),
    setup=_private,
)
def noise_not_divided(scene: Scene) -> None:
    """The noise meant for the sum of the gradients lands on their mean."""
    scene.before_step = _PrivateNoise(0.02)


def _slow(scene: Scene) -> None:
    """A tenth of the rate, so that there is still much to learn when the case begins."""
    for group in scene.optimizer.param_groups:
        group["lr"] *= 0.1


class _HalvedAgain:
    """Registers one more halving hook on each parameter every five steps."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters

    def __call__(self, scene: Scene) -> None:
        if scene.step % 5 == 0:
            for parameter in self.parameters:
                parameter.register_hook(lambda gradient: gradient * 0.5)


@fault(
    "halving-hook-registered-anew",
    origin="mechanism: a gradient hook that belongs into the constructor stands in the loop, and "
    "hooks on a parameter add up (the halving hook of MuZero: dotnet/TorchSharp issue 1483)",
    models=("images", "series"),
    setup=_slow,
)
def hooks_pile_up(scene: Scene) -> None:
    """The gradient of everything below the head is halved once more every five steps."""
    head = {"images": "12.", "series": "head."}[scene.kind]
    scene.after_step = _HalvedAgain(
        [p for name, p in scene.model.named_parameters() if not name.startswith(head)]
    )
