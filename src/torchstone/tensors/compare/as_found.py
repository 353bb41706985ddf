"""A model comes out of a run as it went in: what its code writes, adds or replaces is undone."""

from __future__ import annotations

import contextlib
import random
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from torchstone.observe.compat.operators import OpOverload
from torchstone.observe.operators import OperatorMode
from torchstone.tensors.compare.shadow.arguments import written_tensors
from torchstone.tensors.compare.shadow.operators import operator_facts

_CONTAINERS = (dict, OrderedDict, defaultdict, list, set)
_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


class WriteGuard:
    """Copies a tensor of the model when it is first written to: a copy of all would be a second model."""

    def __init__(self) -> None:
        self._watched: dict[int, torch.UntypedStorage] = {}
        self._copies: dict[int, torch.UntypedStorage] = {}

    def watch(self, tensor: torch.Tensor) -> None:
        if tensor.layout == torch.strided and not tensor.is_meta:
            storage = tensor.untyped_storage()
            self._watched[storage._cdata] = storage

    def before_write(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            if tensor.layout != torch.strided:
                continue
            key = tensor.untyped_storage()._cdata
            if key in self._watched and key not in self._copies:
                self._copies[key] = self._watched[key].clone()

    def restore(self) -> None:
        for key, copy in self._copies.items():
            self._watched[key].copy_(copy, non_blocking=False)


class WriteGuardMode(OperatorMode):
    """Tells the guard of every write, where nothing else looks at the operators."""

    def __init__(self, guard: WriteGuard) -> None:
        super().__init__()
        self._guard = guard

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(func, OpOverload):
            facts = operator_facts(func)
            self._guard.before_write(written_tensors(facts, args, kwargs))
        return func(*args, **kwargs)


@contextlib.contextmanager
def model_as_found(model: nn.Module) -> Iterator[WriteGuard]:
    """Values, gradients, flags, hooks and attributes are those of before, after an error too.

    Gradients are put aside, so that the run starts without any. Compiled parts run uncompiled, because
    their operators and layers cannot be followed.
    """
    guard = WriteGuard()
    tensors = [_TensorState.of(item) for item in (*model.parameters(), *model.buffers())]
    modules = [_ModuleState.of(module) for module in model.modules()]
    for state in tensors:
        guard.watch(state.values)
    for module in modules:
        for item in module.loose_tensors():
            guard.watch(item)
    try:
        for state in tensors:
            state.tensor.grad = None
        with _uncompiled():
            yield guard
    finally:
        guard.restore()
        for state in tensors:
            state.restore()
        for module in modules:
            module.restore()


def _uncompiled() -> contextlib.AbstractContextManager[object]:
    stance = getattr(torch.compiler, "set_stance", None)  # torch 2.6 and later
    return stance("force_eager") if stance else contextlib.nullcontext()


@dataclass(frozen=True)
class _TensorState:
    """A parameter or buffer: its memory, gradient and hooks."""

    tensor: torch.Tensor
    values: torch.Tensor
    gradient: torch.Tensor | None
    requires_grad: bool
    hooks: tuple[dict[int, Any], ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _TensorState:
        hooks = tuple(dict(getattr(tensor, name, None) or {}) for name in _TENSOR_HOOKS)
        return cls(tensor, tensor.data, tensor.grad, tensor.requires_grad, hooks)

    def restore(self) -> None:
        self.tensor.data = self.values
        self.tensor.grad = self.gradient
        if self.tensor.is_leaf:
            self.tensor.requires_grad_(self.requires_grad)
        for name, before in zip(_TENSOR_HOOKS, self.hooks, strict=True):
            table = getattr(self.tensor, name, None)
            if table is not None:
                table.clear()
                table.update(before)


@dataclass(frozen=True)
class _ModuleState:
    """Everything a module holds, with the contents of its dicts and lists: parameters, hooks, counters."""

    module: nn.Module
    attributes: dict[str, Any]
    contents: dict[str, Any]

    @classmethod
    def of(cls, module: nn.Module) -> _ModuleState:
        attributes = dict(vars(module))
        contents = {
            name: value.copy() for name, value in attributes.items() if type(value) in _CONTAINERS
        }
        return cls(module, attributes, contents)

    def loose_tensors(self) -> Iterator[torch.Tensor]:
        """Tensors that are no parameters or buffers."""
        for value in (self.attributes, *self.contents.values()):
            for item in value.values() if isinstance(value, dict) else value:
                if isinstance(item, torch.Tensor):
                    yield item

    def restore(self) -> None:
        held = vars(self.module)
        held.clear()
        held.update(self.attributes)
        for name, before in self.contents.items():
            value = self.attributes[name]
            value.clear()
            value.extend(before) if isinstance(value, list) else value.update(before)


@contextlib.contextmanager
def same_randomness(model: nn.Module, seed: int) -> Iterator[None]:
    """Every generator that a forward may ask starts at the seed, and is afterwards where it was."""
    kinds = {item.device.type for item in (*model.parameters(), *model.buffers())} - {"cpu", "meta"}
    devices: list[Any] = [getattr(torch, kind, None) for kind in sorted(kinds)]
    seeded = [module for module in devices if hasattr(module, "get_rng_state_all")]
    states = [(module, module.get_rng_state_all()) for module in seeded]
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % (1 << 32))
        for module in seeded:
            module.manual_seed_all(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            for module, state in states:
                module.set_rng_state_all(state)
