"""Calls of the project's modules, with copies of their inputs."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchstone.conductor.probes.harvest.listeners.state import (
    TRACED_STEPS,
    Hooks,
)
from torchstone.conductor.probes.harvest.listeners.values import (
    copied,
    is_scalar,
    is_state,
    is_tokens,
)
from torchstone.conductor.probes.harvest.recording import (
    ModeChange,
    ModuleCall,
    TopCall,
)
from torchstone.core.place import NOWHERE, Place
from torchstone.observe.compat.trees import tree_leaves

_MOST_CALLS = {True: 2, False: 4}
"""Kept calls of one module in training and in evaluation."""
_MOST_FRESH = 5_000_000
_MOST_LINKED = 16
"""Kept calls of one model that get a cache: a prompt and some decoded tokens."""


def is_own(hooks: Hooks, module: nn.Module) -> bool:
    kind = type(module)
    known = hooks.classes.get(kind)
    if known is None:
        code = getattr(kind.forward, "__code__", None)
        known = code is not None and hooks.where.is_own(code.co_filename)
        hooks.classes[kind] = known
    return known


def watch_modules(hooks: Hooks) -> None:
    call, init, train = nn.Module.__call__, nn.Module.__init__, nn.Module.train

    @functools.wraps(call)
    def recorded_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not is_own(hooks, module) or hooks.depth < 0:
            return call(module, *args, **kwargs)
        return _record_call(hooks, call, module, args, kwargs)

    @functools.wraps(init)
    def recorded_init(module: nn.Module, *args: Any, **kwargs: Any) -> None:
        init(module, *args, **kwargs)
        if is_own(hooks, module):
            hooks.run.modules.append(module)
            if place := _maker(hooks):
                hooks.run.made_at[id(module)] = place

    def recorded_train(module: nn.Module, mode: bool = True) -> Any:
        if not hooks.quiet and (place := hooks.where.own(2)) and hooks.depth == 0:
            if not any(event.place == place for event in hooks.run.of(ModeChange)) or (
                is_own(hooks, module)
            ):
                hooks.note(ModeChange(place, hooks.run.steps, id(module), mode))
        with hooks.inside_torch():
            return train(module, mode)

    nn.Module.__call__ = recorded_call  # type: ignore[method-assign]
    nn.Module.__init__ = recorded_init  # type: ignore[method-assign, assignment]
    nn.Module.train = recorded_train  # type: ignore[method-assign, assignment]


def _maker(hooks: Hooks) -> Place:
    """The innermost line of the project that is not in the constructor of a module."""
    for frame in hooks.where.own_frames(sys._getframe(2)):
        is_constructor = frame.f_code.co_name == "__init__"
        if not is_constructor or not isinstance(frame.f_locals.get("self"), nn.Module):
            return hooks.where.line_of(frame)
    return NOWHERE


def _keep_fresh(hooks: Hooks, module: nn.Module) -> None:
    """A copy of a model as it is before its first call."""
    small = sum(item.numel() for item in module.parameters()) <= _MOST_FRESH
    if id(module) in hooks.run.fresh or not small or isinstance(module, DistributedDataParallel):
        return
    try:
        hooks.run.fresh[id(module)] = copy.deepcopy(module)
    except Exception as error:  # a model that cannot be copied is not compared with its beginning
        hooks.run.not_probed[f"state of {type(module).__name__}"] = (
            f"{type(error).__name__}: {error}"
        )


def _sum_of_weights(module: nn.Module) -> float:
    first = next(module.parameters(), None)
    plain = first is not None and first.device.type == "cpu" and first.is_floating_point()
    return float(first.detach().double().sum()) if first is not None and plain else 0.0


def _record_call(
    hooks: Hooks, call: Callable[..., Any], module: nn.Module, args: Any, kwargs: Any
) -> Any:
    top = hooks.depth == 0
    place = hooks.where.own(3)
    kept: ModuleCall | None = None
    linked = any(is_state(item) for item in (*args, *kwargs.values()))
    key = (id(module), module.training, linked)
    limit = _MOST_LINKED if linked else _MOST_CALLS[module.training]
    if hooks.counts.get(key, 0) < limit:
        hooks.counts[key] = hooks.counts.get(key, 0) + 1
        kept = ModuleCall(
            module, copied(args), copied(kwargs), module.training, torch.is_grad_enabled(),
            place, top, len(hooks.run.calls), autocast=hooks.mode.autocast,
        )  # fmt: skip
    if top and not hooks.quiet:
        hooks.start_clock()
        _keep_fresh(hooks, module)
        if not module.training:
            hooks.loops.count()
        hooks.tokens.extend([item for item in tree_leaves((args, kwargs)) if is_tokens(item)][:1])
        grad = torch.is_grad_enabled()
        weights = 0.0 if grad else _sum_of_weights(module)
        stack = hooks.where.stack(3)
        hooks.note(
            TopCall(place, hooks.run.steps, id(module), module.training, grad, stack, weights)
        )
    with hooks.inside_call(module, top):
        output = call(module, *args, **kwargs)
    if not hooks.quiet and torch.is_grad_enabled() and hooks.run.steps < TRACED_STEPS:
        found = [item for item in tree_leaves(output) if is_scalar(item)]
        hooks.terms.extend(item for item in found if item.requires_grad)
        hooks.run.scalars.extend((type(module), item) for item in found if not item.requires_grad)
    if kept is not None:
        hooks.run.calls.append(replace(kept, output=copied(output)))
    return output
