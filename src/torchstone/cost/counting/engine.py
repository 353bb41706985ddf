"""One counted pass over a model on meta tensors: forward, backward, optimizer step."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch._dynamo  # some meta kernels load it; in the midst of a run that holds on to its frames
from torch import nn

from torchstone.cost.counting.ends import Inputs
from torchstone.cost.counting.equal_layers.copied import Disagreement
from torchstone.cost.counting.session import Session
from torchstone.cost.counting.stepping import MakeOptimizer
from torchstone.cost.records.ledger import Cost
from torchstone.observe.undo import Undo, heal, keep_modes, leave_inference_mode
from torchstone.runtime.on_meta.autocast import MetaAutocast

__all__ = ["ALONE", "Inputs", "MakeOptimizer", "alone", "output_of", "run", "unwrapped"]

ALONE = threading.RLock()
"""A run changes parts of torch while it lasts; two at once would not give them back."""


def run(
    model: nn.Module,
    inputs: Inputs,
    *,
    train: bool = False,
    optimizer: MakeOptimizer | None = None,
    fused: bool = True,
    replay: bool = True,
    autocast: torch.dtype | None = None,
) -> Cost:
    """Count one forward, and with `train` one backward and one optimizer step.

    The model is not changed: it runs with meta stand-ins for its parameters and buffers.
    """
    start = time.process_time()
    asked = _Asked(unwrapped(model), inputs, train, optimizer, fused, autocast)
    cost = None
    if replay:
        with contextlib.suppress(Disagreement):
            cost = _run(asked, True)
    if cost is None or (cost.failure and replay):
        cost = _run(asked, False)
    return replace(cost, seconds=time.process_time() - start)


@dataclass(frozen=True)
class _Asked:
    """What a run is asked for."""

    model: nn.Module
    inputs: Inputs
    train: bool
    optimizer: MakeOptimizer | None
    fused: bool
    autocast: torch.dtype | None


def _run(asked: _Asked, replay: bool) -> Cost:
    undo = Undo()
    try:
        with alone(), undo:
            _quiet(undo)
            return _counted(asked, undo, replay)
    finally:
        undo.close()  # an interrupt may have ended the way out before it began


def alone() -> contextlib.AbstractContextManager[Any]:
    """The lock under which a run changes torch; what interrupted runs left is put right first."""
    if not ALONE._is_owned():  # type: ignore[attr-defined]
        with ALONE:
            heal()
    return ALONE


def _quiet(undo: Undo) -> None:
    """The user's random numbers are not drawn, modes come back, and the collector rests: memory
    must not depend on when it happens to run, and it is half of the time."""
    state = torch.random.get_rng_state()
    undo.later(lambda: torch.random.set_rng_state(state))
    if gc.isenabled():
        undo.later(gc.enable)
        gc.disable()
    keep_modes(undo)
    leave_inference_mode(undo)


def _counted(asked: _Asked, undo: Undo, replay: bool) -> Cost:
    inputs = asked.inputs
    if callable(inputs) and not isinstance(inputs, torch.Tensor):
        inputs = inputs()
    session = Session(asked.model)
    session.open(undo, asked.train, replay, asked.fused)
    arguments = session.arguments(inputs)
    failure = None
    try:
        with MetaAutocast(asked.autocast) if asked.autocast else contextlib.nullcontext():
            session.forward(arguments, asked.train)
        if asked.train:
            session.backward()
            if asked.optimizer is not None:
                session.step(asked.optimizer)
    except Disagreement:
        raise
    except (Exception, SystemExit) as error:  # what the model raises is the finding
        failure = session.failed(error)
    return session.cost(asked.train, failure)


def output_of(model: nn.Module, inputs: Inputs) -> Any:
    """What the forward of a model gives on meta tensors; what it raises passes through."""
    undo = Undo()
    try:
        with alone(), undo:
            _quiet(undo)
            session = Session(unwrapped(model))
            session.open(undo, train=False, replay=False, fused=True)
            session.forward(session.arguments(inputs), False)
            return session.output
    finally:
        undo.close()


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside `torch.compile`'s wrapper."""
    return getattr(model, "_orig_mod", model)
