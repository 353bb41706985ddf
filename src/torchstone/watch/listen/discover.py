"""What a training step works with, found in its call: model, optimizers, scaler, scheduler, loss."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_DEPTH = 3
_MOST = 2000


@dataclass(slots=True)
class Found:
    """The parts of a training step, each with the name it was found under."""

    models: list[tuple[str, nn.Module]] = field(default_factory=list)
    optimizers: list[tuple[str, torch.optim.Optimizer]] = field(default_factory=list)
    scalers: list[tuple[str, Any]] = field(default_factory=list)
    schedulers: list[tuple[str, Any]] = field(default_factory=list)


def discover(
    function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Found:
    """Look through arguments, the object of a method, the closure and the globals it names."""
    found = Found()
    seen: set[int] = set()
    for name, value in _places(function, args, kwargs):
        for path, item in _walk(name, value, _DEPTH, seen):
            _sort(found, path, item)
    inner = {id(m) for _, model in found.models for m in list(model.modules())[1:]}
    found.models = [(n, m) for n, m in found.models if id(m) not in inner]
    owned = {id(p) for _, o in found.optimizers for g in o.param_groups for p in g["params"]}
    if owned:  # a teacher or a frozen encoder is not what is trained
        trained = [(n, m) for n, m in found.models if any(id(p) in owned for p in m.parameters())]
        found.models = trained or found.models
    return found


def _places(
    function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    for i, value in enumerate(args):
        yield f"argument {i + 1}", value
    yield from kwargs.items()
    if isinstance(function, functools.partial):
        yield from _places(function.func, function.args, function.keywords)
        return
    plain: Any = getattr(function, "__func__", function)
    while hasattr(plain, "__wrapped__"):
        plain = plain.__wrapped__
    if (owner := getattr(function, "__self__", None)) is not None:
        yield "self", owner
    code = getattr(plain, "__code__", None)
    if code is None:
        return
    for name, cell in zip(
        code.co_freevars, getattr(plain, "__closure__", None) or (), strict=False
    ):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled yet
            continue
    names = getattr(plain, "__globals__", {})
    for name in _names(code):
        if name in names:
            yield name, names[name]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _walk(path: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if (
        id(value) in seen
        or len(seen) > _MOST
        or isinstance(value, (str, bytes, int, float, Tensor))
    ):
        return
    seen.add(id(value))
    if _is_part(value):
        yield path, value
        return
    if depth == 0 or isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return
    if isinstance(value, Mapping):
        items = [(f"{path}[{key!r}]", item) for key, item in list(value.items())[:64]]
    elif isinstance(value, (list, tuple)):
        items = [(f"{path}[{i}]", item) for i, item in enumerate(value[:64])]
    else:
        items = [(f"{path}.{key}", item) for key, item in list(_attributes(value).items())[:128]]
    for inner, item in items:
        yield from _walk(inner, item, depth - 1, seen)


def _attributes(value: Any) -> dict[str, Any]:
    """Instance attributes only: a property might do anything."""
    found = getattr(value, "__dict__", None)
    return found if isinstance(found, dict) else {}


def _is_part(value: Any) -> bool:
    return isinstance(
        value,
        (
            nn.Module,
            torch.optim.Optimizer,
            torch.amp.GradScaler,
            torch.optim.lr_scheduler.LRScheduler,
        ),
    )


def _sort(found: Found, path: str, item: Any) -> None:
    if isinstance(item, nn.Module):
        if any(p.requires_grad for p in item.parameters()):
            found.models.append((path, item))
    elif isinstance(item, torch.optim.Optimizer):
        found.optimizers.append((path, item))
    elif isinstance(item, torch.amp.GradScaler):
        found.scalers.append((path, item))
    else:
        found.schedulers.append((path, item))


def loss_in(value: Any, depth: int = 3) -> Tensor | float | None:
    """The loss in what a training step returned: a scalar, `loss` of a mapping or object, or first."""
    if isinstance(value, Tensor):
        return value if value.numel() == 1 and not value.is_complex() else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float, np.floating, np.integer)):
        try:
            return float(value)
        except OverflowError:
            return None
    if isinstance(value, Mapping):
        named = [key for key in value if isinstance(key, str) and key.lower().endswith("loss")]
        return loss_in(value["loss"] if "loss" in value else value[named[0]]) if named else None
    if isinstance(getattr(value, "loss", None), Tensor):
        return loss_in(value.loss)
    if isinstance(value, (tuple, list)) and depth:
        found = (loss_in(item, depth - 1) for item in value[:16])
        return next((item for item in found if item is not None), None)
    return None


def tensors_in(values: Any, depth: int = 3) -> Iterator[Tensor]:
    """The tensors of a batch, in order."""
    if isinstance(values, Tensor):
        yield values
    elif depth and isinstance(values, Mapping):
        for item in values.values():
            yield from tensors_in(item, depth - 1)
    elif depth and isinstance(values, (tuple, list)):
        for item in values[:32]:
            yield from tensors_in(item, depth - 1)
