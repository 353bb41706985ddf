"""Backward passes and gradient clipping."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterator
from typing import Any

import torch

from torchstone.conductor.probes.harvest.listeners.state import (
    WEIGHED_STEPS,
    Hooks,
)
from torchstone.conductor.probes.harvest.listeners.values import (
    gradient_norm,
    parameters_of,
    signature_of,
)
from torchstone.conductor.probes.harvest.operators import Producers
from torchstone.conductor.probes.harvest.recording import (
    Backward,
    Clip,
    LossTerm,
    Recomputed,
)
from torchstone.core.place import Place
from torchstone.observe.training import TRAINING, ClipBegins, ClipEnds


def watch_backward(hooks: Hooks) -> None:
    def recorded(
        tensor: torch.Tensor, gradient: Any = None, retain_graph: bool | None = None,
        create_graph: bool = False, inputs: Any = None,
    ) -> None:  # fmt: skip
        if not hooks.quiet:
            _before_backward(hooks, tensor)
        with hooks.trace.backward():
            start, given = _start(tensor, gradient) if inputs is None else (tensor, gradient)
            torch.autograd.backward(start, given, retain_graph, create_graph, inputs=inputs)

    torch.Tensor.backward = recorded  # type: ignore[method-assign]


def _start(tensor: torch.Tensor, gradient: Any) -> tuple[Any, Any]:
    """An edge of the graph instead of a tensor: with a tensor torch leaves the run's function
    mode for the whole backward pass, and blocks that are recomputed in it need that mode."""
    if not tensor.requires_grad or (gradient is None and tensor.numel() != 1):
        return tensor, gradient  # torch says what is wrong
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    given = torch.ones_like(tensor) if gradient is None else gradient
    return (edge,), (given,)  # torch 2.6 takes an edge alone, a tuple, for several tensors


def _before_backward(hooks: Hooks, tensor: torch.Tensor) -> None:
    scaled = id(tensor) in hooks.scaled
    value = float(tensor.detach().float().mean()) if tensor.numel() else math.nan
    hooks.begin_backward(scaled, _are_stale(hooks))
    if scaled:
        value /= hooks.scale
    _note_terms(hooks, tensor)
    hooks.note(Backward(
        hooks.where.own(3), hooks.run.steps, value, tensor.numel(), scaled,
        hooks.mode.autocast is not None, _weight_of_loss(hooks, tensor),
    ))  # fmt: skip


def _note_terms(hooks: Hooks, tensor: torch.Tensor) -> None:
    """Scalars of modules that do not reach the loss, or reach it without a gradient."""
    terms = hooks.take_terms()
    place = hooks.where.own(4)
    added = {id(item) for item in hooks.mode.constants}
    _note_siblings(hooks, place, added)
    for item in hooks.mode.constants:
        hooks.note(LossTerm(place, hooks.run.steps, item, True))
    hooks.mode.constants.clear()
    if not terms or not tensor.requires_grad:
        return
    try:
        found: tuple[Any, ...] = torch.autograd.grad(
            tensor, terms, torch.ones_like(tensor), retain_graph=True, allow_unused=True
        )
    except RuntimeError:
        return
    for item, gradient in zip(terms, found, strict=True):
        if gradient is None:
            hooks.note(LossTerm(place, hooks.run.steps, item, False))


def _note_siblings(hooks: Hooks, place: Place, added: set[int]) -> None:
    """Of the scalars that several modules of one class gave back, only some reach the sum."""
    scalars = hooks.run.scalars.copy()
    hooks.run.scalars.clear()
    producers = Producers(hooks.trace.operators)
    used = [ancestor for item in hooks.mode.constants for ancestor in producers.ancestors(item)]
    inputs = added | {id(given) for ancestor in used for given in ancestor.inputs}
    for kind in {kind for kind, _ in scalars}:
        own = [item for other, item in scalars if other is kind]
        left = [item for item in own if id(item) not in inputs]
        if left and len(left) < len(own):
            hooks.note(LossTerm(place, hooks.run.steps, left[0], False))


def _weight_of_loss(hooks: Hooks, tensor: torch.Tensor) -> float:
    """The factor by which the loss function's mean enters the backward pass."""
    values = hooks.take_loss_values()
    if (
        hooks.run.steps >= WEIGHED_STEPS
        or not values
        or tensor.numel() != 1
        or not tensor.requires_grad
    ):
        return math.nan
    try:
        found: tuple[Any, ...] = torch.autograd.grad(
            tensor, values, retain_graph=True, allow_unused=True
        )
    except RuntimeError:  # a graph that was freed already
        return math.nan
    known = [abs(float(item)) for item in found if item is not None]
    return max(known) / hooks.scale if known else math.nan


def _are_stale(hooks: Hooks) -> bool:
    """Whether a step has used the gradients, and nobody cleared them."""
    if not hooks.used or hooks.backwards:
        return False
    return any(grad is not None and bool(grad.abs().sum() > 0) for grad in _left_gradients(hooks))


def _left_gradients(hooks: Hooks) -> Iterator[torch.Tensor | None]:
    for optimizer in hooks.run.optimizers:
        for item in parameters_of(optimizer):
            yield item.grad if hooks.used.get(id(item)) is item.grad else None


def watch_clipping(hooks: Hooks) -> None:
    before: list[float] = []

    def begins(event: ClipBegins) -> None:
        before.append(gradient_norm(list(event.parameters)))
        if hooks.run.world > 1 and not hooks.run.parameters:
            hooks.unclipped.update(
                (id(item), signature_of(item.grad))
                for item in event.parameters
                if item.grad is not None
            )

    def ends(event: ClipEnds) -> None:
        norm = before.pop()
        if not hooks.quiet:
            hooks.note(Clip(
                hooks.where.own(), hooks.run.steps, float(event.max_norm), norm,
                gradient_norm(list(event.parameters)),
                hooks.scale if hooks.backwards else 1.0, frozenset(map(id, event.parameters)),
            ))  # fmt: skip

    TRAINING.subscribe(begins, ClipBegins)
    TRAINING.subscribe(ends, ClipEnds)


def watch_recomputation(hooks: Hooks) -> None:
    """Blocks that are computed again without the state of the generator."""
    whole: Any = importlib.import_module("torch.utils.checkpoint")
    checkpoint = whole.checkpoint

    @functools.wraps(checkpoint)
    def recorded(function: Any, *args: Any, **kwargs: Any) -> Any:
        before = torch.get_rng_state()
        result = checkpoint(function, *args, **kwargs)
        if not kwargs.get("preserve_rng_state", True) and not hooks.quiet:
            drawn = not torch.equal(before, torch.get_rng_state())
            hooks.note(Recomputed(hooks.where.own(2), hooks.run.steps, drawn))
        return result

    whole.checkpoint = recorded
