"""Replicas that are updated with gradients of their own grow apart, without any error."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from torchstone.dryrun.ranks.uniform import Uniform
from torchstone.dryrun.script.session import Session, is_fake
from torchstone.dryrun.shapes.history import operand


def watch_for_drift(session: Session, uniform: Uniform) -> None:
    """Before each step: parameters that were made equal on all ranks need equal gradients."""

    def before_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        parameters = [
            parameter
            for group in optimizer.param_groups
            for parameter in group["params"]
            if is_replica(parameter, uniform)
        ]
        local = [item for item in parameters if not uniform.holds(item.grad)]
        if local:
            detail = f"{len(local)} of {len(parameters)} replicated parameters have gradients of this rank alone"
            session.hazard(
                "DR608", "optimizer.step",
                lambda: tuple(operand("parameter", item) for item in local[:4]), detail,
            )  # fmt: skip

    register_optimizer_step_pre_hook(before_step)


def is_replica(parameter: torch.Tensor, uniform: Uniform) -> bool:
    """Known to be equal on all ranks (it was broadcast), whole, and with a gradient."""
    return (
        is_fake(parameter)
        and parameter.grad is not None
        and is_fake(parameter.grad)
        and uniform.holds(parameter)
    )
