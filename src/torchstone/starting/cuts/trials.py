"""Values are tried until a call accepts one: torch itself says what it takes."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from torchstone.starting.cuts.forms import Form
from torchstone.starting.models.guesses import inputs_for

_MOST = 48
"""Trials of one call."""
_SIDES = 5
_SIDE = 32
_LENGTH = 16


def value_for_call(func: Any, args: Any, kwargs: Any, one: Any) -> torch.Tensor | None:
    """A value for `one` with which the call does not fail; the others stay what they are."""
    partners = list(_tensors((args, kwargs)))
    batch = one._batch or one._origin.rows or 4
    name = getattr(func, "__name__", "")
    device = partners[0].device if partners else None
    for value in itertools.islice(_candidates(name, partners, batch), _MOST):
        value = _on(value, device)
        if _accepts(lambda given: func(*_put(args, one, given), **_put(kwargs, one, given)), value):
            return value
    return None


def takes_number(func: Any, args: Any, kwargs: Any, one: Any) -> bool:
    """Whether a call goes on with a whole number for `one`, as one that makes tensors does with sizes."""
    return _accepts(lambda given: func(*_put(args, one, given), **_put(kwargs, one, given)), 2)


def values_for_module(
    module: nn.Module, args: Any, kwargs: Any, ones: Sequence[Any]
) -> tuple[torch.Tensor, ...] | None:
    """Values for all open arguments of a module with which it runs."""
    names = _names(module, args, kwargs, ones)
    partners = list(_tensors((args, kwargs)))
    held = next(iter(module.parameters()), None)
    device = held.device if held is not None else partners[0].device if partners else None
    for values in itertools.islice(_of_module(module, names, partners, ones), _MOST):
        values = [_on(value, device) for value in values]

        def call(given: Sequence[torch.Tensor]) -> Any:
            now, named = args, kwargs
            for one, value in zip(ones, given, strict=True):
                now, named = _put(now, one, value), _put(named, one, value)
            return module.forward(*now, **named)

        if _accepts(call, values):
            return tuple(values)
    return None


def base_form(value: torch.Tensor, moves: Sequence[Any], batch: int) -> Form | None:
    """The form of the value before it was batched and moved; None where no one leads to it."""
    shape = tuple(value.shape)
    dtype = "float32" if value.is_floating_point() else "int64"
    high = 0 if value.is_floating_point() else max(getattr(value, "_below", 2), 1)
    if not moves:
        inner = shape[1:] if batch else shape
        return Form("tensor", dtype, inner, high)
    sides = sorted({*shape, 1}, reverse=True)
    for is_right in (lambda moved: moved == shape, lambda moved: _is_part(moved, shape)):
        for count in range(_SIDES):
            for inner in itertools.product(sides, repeat=count):
                first = torch.empty((batch, *inner) if batch else inner)
                if is_right(_moved(first, moves)):
                    return Form("tensor", dtype, inner, high)
    return None


def _is_part(moved: tuple[int, ...] | None, shape: tuple[int, ...]) -> bool:
    """Whether a slice of a value has as many sides, and elements along each of them."""
    return moved is not None and len(moved) == len(shape) and all(moved)


def _moved(value: torch.Tensor, moves: Sequence[Any]) -> tuple[int, ...] | None:
    try:
        for name, args, kwargs in moves:
            made = getattr(value, name)
            value = made(*args, **kwargs) if callable(made) else made
    except Exception:  # these sides cannot be moved so
        return None
    return tuple(value.shape)


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for item in values:
            yield from _tensors(item)
    elif isinstance(values, dict):
        yield from _tensors(tuple(values.values()))


def _names(module: nn.Module, args: Any, kwargs: Any, ones: Sequence[Any]) -> list[str]:
    try:
        parameters = list(inspect.signature(module.forward).parameters)
    except (TypeError, ValueError):
        parameters = []
    known = {id(value): name for name, value in zip(parameters, args, strict=False)}
    known |= {id(value): name for name, value in kwargs.items()}
    return [known.get(id(one)) or one._origin.name or "x" for one in ones]


def _of_module(
    module: nn.Module, names: list[str], partners: list[torch.Tensor], ones: Sequence[Any]
) -> Iterator[Sequence[torch.Tensor]]:
    batch = next((one._batch for one in ones if one._batch), 0) or 4
    if partners:
        for value in _candidates("", partners, batch):
            yield [value for _ in ones]
    for texts in inputs_for(module, names):
        made = [eval(text, {"torch": torch}) for text in texts]
        if all(isinstance(item, torch.Tensor) for item in made):
            yield [_with_rows(item, text, batch) for item, text in zip(made, texts, strict=True)]


def _with_rows(value: torch.Tensor, text: str, batch: int) -> torch.Tensor:
    rows = value[:1].expand(batch, *value.shape[1:]).clone() if value.dim() else value
    if "randint(0, " in text:
        rows = _below(rows, int(text.partition("randint(0, ")[2].partition(",")[0]))
    return rows


def _candidates(name: str, partners: Sequence[torch.Tensor], batch: int) -> Iterator[torch.Tensor]:
    for one in partners:
        yield from _for_weight(name, one, batch)
    for one in partners:
        shape = tuple(one.shape)
        if one.is_floating_point() and len(shape) > 1:
            yield _whole((shape[0], *shape[2:]), shape[1])
            yield _whole(shape[:-1], shape[-1])
        yield torch.rand(shape)
        yield _whole(shape, 2)
        if shape:
            yield torch.rand(shape[0])
            yield torch.rand(shape[0], 1)
            yield _whole(shape[:1], 2)


def _for_weight(name: str, weight: torch.Tensor, batch: int) -> Iterator[torch.Tensor]:
    """What is taken with a weight of these sides."""
    shape = tuple(weight.shape)
    if name.startswith("conv") and len(shape) > 2:
        for side in (_SIDE, 64, 224):
            yield torch.rand(batch, shape[1], *(side for _ in shape[2:]))
    elif name == "linear" and len(shape) == 2:
        yield torch.rand(batch, shape[1])
        yield torch.rand(batch, _LENGTH, shape[1])
    elif name == "embedding" and len(shape) == 2:
        yield _whole((batch, _LENGTH), shape[0])


def _whole(shape: tuple[int, ...], below: int) -> torch.Tensor:
    return _below(torch.zeros(shape, dtype=torch.int64), below)


def _below(value: torch.Tensor, high: int) -> torch.Tensor:
    value._below = high  # type: ignore[attr-defined]
    return value


def _on(value: torch.Tensor, device: torch.device | None) -> torch.Tensor:
    if device is None or device == value.device:
        return value
    return _below(value.to(device), getattr(value, "_below", 2))


def _accepts(call: Any, value: Any) -> bool:
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("error")  # sides that only broadcast are warned of
            call(value)
    except Exception:  # this value is not what it takes
        return False
    return True


def _put(values: Any, one: Any, given: Any) -> Any:
    if values is one:
        return given
    if isinstance(values, dict):
        return {key: _put(item, one, given) for key, item in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)(_put(item, one, given) for item in values)
    return values
