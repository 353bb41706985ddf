"""Steps of optimizers and schedulers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchstone.conductor.probes.harvest.listeners.state import (
    Hooks,
)
from torchstone.conductor.probes.harvest.listeners.values import (
    digest_of,
    gradient_norm,
    parameters_of,
    signature_of,
)
from torchstone.conductor.probes.harvest.recording import (
    OptimizerStep,
    ParameterFacts,
    SchedulerStep,
    ZeroGrad,
)
from torchstone.observe.training import (
    TRAINING,
    Event,
    GradientsCleared,
    OptimizerMade,
    SchedulerMade,
    SchedulerSteps,
    StepBegins,
    StepEnds,
)

_DIGESTS = 4


def watch_optimizers(hooks: Hooks) -> None:
    def handle(handler: Callable[[Hooks, Any], None]) -> Callable[[Any], None]:
        return functools.partial(_unless_quiet, hooks, handler)

    TRAINING.subscribe(handle(_made), OptimizerMade)
    TRAINING.subscribe(handle(_cleared), GradientsCleared)
    TRAINING.subscribe(handle(_before_step), StepBegins)
    TRAINING.subscribe(handle(_after_step), StepEnds)


def _unless_quiet(hooks: Hooks, handler: Callable[[Hooks, Any], None], event: Event) -> None:
    if not hooks.quiet:
        handler(hooks, event)


def _made(hooks: Hooks, event: OptimizerMade) -> None:
    hooks.run.optimizers.append(event.optimizer)
    hooks.run.optimizer_places[id(event.optimizer)] = hooks.where.own()


def _cleared(hooks: Hooks, _: GradientsCleared) -> None:
    hooks.used.clear()
    hooks.note(ZeroGrad(hooks.where.own(), hooks.run.steps))


def _before_step(hooks: Hooks, event: StepBegins) -> None:
    items = list(parameters_of(event.optimizer))
    if len(hooks.run.digests) < _DIGESTS:
        hooks.run.digests.append(digest_of(items))
    if not hooks.run.parameters and hooks.run.world > 1:
        hooks.run.parameters.extend(_facts(hooks, item) for item in items)
    have = frozenset(id(item) for item in items if item.grad is not None)
    hooks.note(OptimizerStep(
        hooks.where.own(), hooks.run.steps, id(event.optimizer), gradient_norm(items),
        hooks.scale, have, frozenset(map(id, items)) - have, hooks.backwards, hooks.stale,
        sum(item.dtype == torch.float16 for item in items),
    ))  # fmt: skip


def _facts(hooks: Hooks, item: torch.Tensor) -> ParameterFacts:
    owner = hooks.run.owner_of(id(item))
    name = f"{type(owner[0]).__name__}.{owner[1]}" if owner else ""
    gradient = item.grad if item.grad is not None else torch.zeros(())
    constant = bool((item.detach() == item.detach().flatten()[:1]).all())
    return ParameterFacts(name, tuple(item.shape), constant, signature_of(item),
                          signature_of(gradient), hooks.unclipped.get(id(item)))  # fmt: skip


def _after_step(hooks: Hooks, event: StepEnds) -> None:
    for item in parameters_of(event.optimizer):
        if item.grad is not None:
            hooks.used[id(item)] = item.grad
    hooks.run.count_step()
    hooks.unclipped.clear()
    hooks.end_step()


def watch_schedulers(hooks: Hooks) -> None:
    def made(event: SchedulerMade) -> None:
        if not hooks.quiet:
            hooks.run.schedulers.append(event.scheduler)

    def steps(_: SchedulerSteps) -> None:
        hooks.note(SchedulerStep(hooks.where.own(), hooks.run.steps, hooks.run.steps))

    TRAINING.subscribe(made, SchedulerMade)
    TRAINING.subscribe(steps, SchedulerSteps)
