"""Steps of optimizers and schedulers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

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

_DIGESTS = 4


def watch_optimizers(hooks: Hooks) -> None:
    init, zero, module_zero = (
        torch.optim.Optimizer.__init__, torch.optim.Optimizer.zero_grad, nn.Module.zero_grad,
    )  # fmt: skip

    def recorded_init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        init(optimizer, *args, **kwargs)
        if not hooks.quiet:
            hooks.run.optimizers.append(optimizer)
            hooks.run.optimizer_places[id(optimizer)] = hooks.where.own(2)

    def recorded_zero(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        zero(optimizer, *args, **kwargs)
        _cleared(hooks)

    def recorded_module_zero(module: Any, *args: Any, **kwargs: Any) -> None:
        module_zero(module, *args, **kwargs)
        _cleared(hooks)

    torch.optim.Optimizer.__init__ = recorded_init  # type: ignore[method-assign, assignment]
    torch.optim.Optimizer.zero_grad = recorded_zero  # type: ignore[method-assign, assignment]
    nn.Module.zero_grad = recorded_module_zero  # type: ignore[method-assign, assignment]
    register_optimizer_step_pre_hook(functools.partial(_before_step, hooks))
    register_optimizer_step_post_hook(functools.partial(_after_step, hooks))


def _cleared(hooks: Hooks) -> None:
    if not hooks.quiet:
        hooks.used.clear()
        hooks.note(ZeroGrad(hooks.where.own(3), hooks.run.steps))


def _before_step(hooks: Hooks, optimizer: Any, *_: Any) -> None:
    if hooks.quiet:
        return
    items = list(parameters_of(optimizer))
    if len(hooks.run.digests) < _DIGESTS:
        hooks.run.digests.append(digest_of(items))
    if not hooks.run.parameters and hooks.run.world > 1:
        hooks.run.parameters += [_facts(hooks, item) for item in items]
    have = frozenset(id(item) for item in items if item.grad is not None)
    hooks.note(OptimizerStep(
        hooks.where.own(2), hooks.run.steps, id(optimizer), gradient_norm(items),
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


def _after_step(hooks: Hooks, optimizer: Any, *_: Any) -> None:
    if hooks.quiet:
        return
    for item in parameters_of(optimizer):
        if item.grad is not None:
            hooks.used[id(item)] = item.grad
    hooks.run.steps += 1
    hooks.backwards, hooks.stale = 0, False
    hooks.unclipped.clear()
    hooks.scaled.clear()
    hooks.loops.count()
    hooks.check_time()


def watch_schedulers(hooks: Hooks) -> None:
    base = torch.optim.lr_scheduler.LRScheduler
    init = base.__init__

    def recorded_init(scheduler: Any, *args: Any, **kwargs: Any) -> None:
        quiet, hooks.quiet = hooks.quiet, True  # the first value is set by a step of its own
        init(scheduler, *args, **kwargs)
        hooks.quiet = quiet
        if not quiet:
            hooks.run.schedulers.append(scheduler)

    def recorded(step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def recorded_step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            hooks.note(SchedulerStep(hooks.where.own(2), hooks.run.steps, hooks.run.steps))
            return step(scheduler, *args, **kwargs)

        return recorded_step

    base.__init__ = recorded_init  # type: ignore[method-assign, assignment]
    for kind in vars(torch.optim.lr_scheduler).values():
        if isinstance(kind, type) and issubclass(kind, base) and "step" in vars(kind):
            kind.step = recorded(kind.step)  # type: ignore[method-assign]
