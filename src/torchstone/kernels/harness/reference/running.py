"""The problem itself, running: its inputs, its answers, and its answers in double precision."""

from __future__ import annotations

import contextlib
import copy
import linecache
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeGuard, TypeVar

import numpy as np
import torch

from torchstone.kernels.harness.kits import mindspore_kit
from torchstone.kernels.harness.kits.cuda_looks import looking
from torchstone.kernels.harness.seeding import seed_everything, weights_of
from torchstone.observe.operators import OperatorMode

LOW = (torch.float32, torch.float16, torch.bfloat16)
Values = list[object]
"""What a model is called with, or the leaves of something nested."""


T = TypeVar("T")


class ProblemError(Exception):
    """A problem that cannot be used; the text is for the person who wrote it."""


class DoublePrecision(OperatorMode):
    """Every cast and every new tensor in a lower format becomes double."""

    def run(self, func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        if any(type(value) is torch.dtype for value in args):
            args = tuple(_raised(value) for value in args)
        keywords = {name: _raised(value) for name, value in kwargs.items()} if kwargs else {}
        return self.step(func, args, keywords)

    def step(self, func: Any, args: tuple[object, ...], keywords: dict[str, Any]) -> object:
        """One operator."""
        return func(*args, **keywords)


class _Sizes(OperatorMode):
    """Keeps the size of the largest result."""

    largest = 0

    def run(self, func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        found = func(*args, **kwargs)
        sizes = [item.numel() for item in leaves_of(found) if isinstance(item, torch.Tensor)]
        self.largest = max([self.largest, *sizes])
        return found


def _raised(value: object) -> object:
    return torch.float64 if type(value) is torch.dtype and value in LOW else value


def run_source(source: str, name: str) -> ModuleType:
    """A module made from source that tracebacks and `inspect` can show."""
    module = ModuleType(name)
    file = f"<{name}>"
    module.__file__ = file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    sys.modules[name] = module
    exec(compile(source, file, "exec"), vars(module))
    return module


def leaves_of(value: object) -> Values:
    """The tensors, arrays and numbers of a nested value, in order; None is none of them."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves_of(item)]
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in leaves_of(item)]
    return [] if value is None else [value]


def rebuilt(value: T, leaves: Iterable[object]) -> T:
    """The nested value with other leaves."""
    source = iter(leaves)

    def build(item: Any) -> Any:
        if isinstance(item, list):
            return [build(part) for part in item]
        if isinstance(item, tuple):
            return tuple(build(part) for part in item)
        if isinstance(item, Mapping):
            return {key: build(part) for key, part in item.items()}
        return None if item is None else next(source)

    made: T = build(value)
    return made


def as_tensor(leaf: object) -> torch.Tensor | None:
    """A leaf as a tensor; None for what has no elements to compare."""
    if isinstance(leaf, torch.Tensor):
        return leaf.detach()
    if mindspore_kit.is_tensor(leaf):
        return torch.from_numpy(np.array(mindspore_kit.array_of(leaf)))
    if isinstance(leaf, np.ndarray | np.generic):
        array = np.array(leaf)
        return torch.from_numpy(array) if array.dtype.kind in "biufc" else None
    if isinstance(leaf, bool | int | float | complex):
        return torch.tensor(leaf, dtype=torch.float64 if isinstance(leaf, float) else None)
    return None


def is_float(leaf: object) -> TypeGuard[torch.Tensor]:
    """A tensor of floating-point numbers."""
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


def like(leaf: object, tensor: torch.Tensor) -> object:
    """A tensor as the kind of value that the leaf is; other tensors give their strides up."""
    if isinstance(leaf, np.ndarray):
        return tensor.numpy()
    if isinstance(leaf, np.generic):
        return tensor.numpy()[()]
    return mindspore_kit.tensor(tensor.numpy()) if mindspore_kit.is_tensor(leaf) else tensor


CHANCE = 99
"""The seed under which the reference is called."""
LARGE_INPUTS = 1 << 16
"""Elements from which on shapes are found without computing: below, a real run is faster."""
REMADE = 1000
"""Seeds from here on stand for models that are made with other arguments than the problem's own."""


@dataclass(slots=True)
class Reference:
    """A loaded problem."""

    module: ModuleType
    framework: str
    init: Values
    _models: dict[tuple[int, bool], Any]
    evaluates: bool = False
    """Models are made in evaluation, because in training two calls of them differ."""
    _shells: dict[int, Any] = field(default_factory=dict)
    """Models without numbers, by their arguments: they tell shapes."""
    _variants: list[Values] = field(default_factory=list)
    """Other arguments that the model was made with."""
    is_heavy: bool = False
    """Its weights are so large that those of all seeds would not fit beside each other."""
    needs_numbers: bool = False
    """Whether it takes inputs depends on more than their shapes."""
    writes_inputs: bool = False
    """A call changes its inputs, so that it must be given copies."""

    @classmethod
    def load(cls, source: str, framework: str) -> Reference:
        """Execute a problem's file; a ProblemError says what is missing."""
        with looking():
            module = run_source(source, "problem")
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not callable(getattr(module, name, None)):
                raise ProblemError(f"no {name}")
        seed_everything(0)
        with looking():
            init = module.get_init_inputs()
        return cls(module, framework, list(init), {})

    def inputs(self, seed: int) -> Values:
        """What `get_inputs` gives under a seed."""
        seed_everything(seed)
        with looking():  # a problem for a GPU makes its inputs there
            made = self.module.get_inputs()
        if not isinstance(made, list | tuple) or not made:
            raise ProblemError(f"get_inputs() gave {type(made).__name__} with nothing in it")
        return list(made)

    def remade(self, init: Values, seed: int) -> int:
        """A seed under which the model is made with these arguments instead of its own."""
        if init == self.init:
            return seed
        if init not in self._variants:
            self._variants.append(init)
        return (self._variants.index(init) + 1) * REMADE + seed

    def arguments(self, seed: int) -> Values:
        """What the model of a seed is made with."""
        variant = seed // REMADE
        return copy.deepcopy(self._variants[variant - 1] if variant else self.init)

    def model(self, seed: int, double: bool = False) -> Any:
        """The model with the weights of a seed, as written or in double precision."""
        key = (seed, double)
        if key not in self._models:
            if self.is_heavy:  # one seed alive at a time
                for other in [item for item in self._models if item[0] != seed]:
                    del self._models[other]
            if double:
                self._models[key] = _doubled(copy.deepcopy(self.model(seed)))
            else:
                self._models[key] = self.made(seed)
        return self._models[key]

    def shapes_without_computing(self, inputs: Values, seed: int) -> list[torch.Size] | None:
        """The shapes of the outputs for inputs of these shapes, from tensors without elements.

        None where the model needs its numbers, or refuses: only a real run tells then.
        """
        sizes = (item.numel() for item in leaves_of(inputs) if isinstance(item, torch.Tensor))
        if sum(sizes) < LARGE_INPUTS or self.needs_numbers:
            return None
        return self._run_without_numbers(inputs, seed, contextlib.nullcontext())

    def largest_step(self, inputs: Values) -> int:
        """Elements of the largest tensor on the way to an answer; 0 where that cannot be told."""
        sizes = _Sizes()
        return sizes.largest if self._run_without_numbers(inputs, 0, sizes) is not None else 0

    def _run_without_numbers(
        self, inputs: Values, seed: int, mode: contextlib.AbstractContextManager[object]
    ) -> list[torch.Size] | None:
        if self.framework != "torch":
            return None
        tensors = [leaf for leaf in leaves_of(inputs) if isinstance(leaf, torch.Tensor)]
        if any(not item.is_floating_point() for item in tensors):
            return None  # places may point beyond what a side has become
        try:
            variant = seed // REMADE
            if variant not in self._shells:
                with torch.device("meta"), looking():
                    model = self.module.Model(*self.arguments(seed))
                self._shells[variant] = model.eval() if self.evaluates else model
            given = rebuilt(inputs, [item.to("meta") if isinstance(item, torch.Tensor) else item
                                     for item in leaves_of(inputs)])  # fmt: skip
            with torch.device("meta"), torch.no_grad(), mode:
                found = leaves_of(callable_of(self._shells[variant])(*given))
        except Exception:  # a model may fail in any way without its numbers
            return None
        whole = [item.shape for item in found if isinstance(item, torch.Tensor)]
        return whole if len(whole) == len(found) else None

    def made(self, seed: int) -> Any:
        """A new model with the weights of a seed, as no call has changed it yet."""
        with weights_of(seed), looking():
            model = self.module.Model(*self.arguments(seed))
        return model.eval() if self.evaluates else model

    def evaluate(self) -> bool:
        """From now on models are in evaluation; False where that changes nothing."""
        model = self.made(0)
        if not isinstance(model, torch.nn.Module) or not model.training:
            return False
        self.evaluates = True
        self._models.clear()
        self._shells.clear()
        return True

    def run_once(self, inputs: Values) -> object:
        """The answer of the first model, without copies of inputs that it leaves alone."""
        if self.writes_inputs:
            return self.run(self.model(0), inputs)
        seed_everything(CHANCE)
        model = self.model(0)
        with torch.no_grad():
            return (model if callable(model) else model.forward)(*inputs)

    def run(
        self, model: Any, inputs: Values, *, double: bool = False, chance: int = CHANCE,
        mode: DoublePrecision | None = None,
    ) -> object:  # fmt: skip
        """The model's answer; a call under a fixed seed, so that chance is no difference.

        `mode` is how double precision is computed, where it is not as it is.
        """
        seed_everything(chance)
        call = model if callable(model) else model.forward
        given = [_copied(item) for item in inputs]
        with torch.no_grad():
            if not double:
                return call(*given)
            before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            try:
                with mode or DoublePrecision():
                    return call(*given)
            finally:
                torch.set_default_dtype(before)

    def state(self, seed: int) -> dict[str, torch.Tensor]:
        """The weights by name: a module's own, or the arrays among an object's attributes."""
        return state_of(self.model(seed))


def callable_of(model: Any) -> Callable[..., object]:
    """What calls a model: itself, or its `forward`."""
    call: Callable[..., object] = model if callable(model) else model.forward
    return call


def state_of(model: Any) -> dict[str, torch.Tensor]:
    """The weights of a model by name."""
    if isinstance(model, torch.nn.Module):
        return {name: value.detach() for name, value in model.state_dict().items()}
    if mindspore_kit.is_cell(model):
        found = mindspore_kit.weights(model)
        return {name: torch.from_numpy(value) for name, value in found.items()}
    own = vars(model) if hasattr(model, "__dict__") else {}
    return {
        name: torch.from_numpy(np.ascontiguousarray(value))
        for name, value in own.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    }


def _copied(value: T) -> T:
    leaves = [
        leaf.clone()
        if isinstance(leaf, torch.Tensor)
        else mindspore_kit.tensor(mindspore_kit.array_of(leaf))
        if mindspore_kit.is_tensor(leaf)
        else copy.copy(leaf)
        for leaf in leaves_of(value)
    ]
    return rebuilt(value, leaves)


def _doubled(model: Any) -> object:
    """Every weight in double precision, those in plain attributes too."""
    if isinstance(model, torch.nn.Module):
        model.double()
    parts = model.modules() if isinstance(model, torch.nn.Module) else [model]
    for part in parts:
        for name, value in list(vars(part).items()) if hasattr(part, "__dict__") else []:
            if isinstance(value, torch.Tensor) and value.dtype in LOW:
                setattr(part, name, value.double())
            elif isinstance(value, np.ndarray) and value.dtype in (np.float32, np.float16):
                setattr(part, name, value.astype(np.float64))
    return model


def doubled(value: T) -> T:
    """Floating inputs in double precision."""

    def one(leaf: object) -> object:
        if isinstance(leaf, torch.Tensor):
            return leaf.double() if leaf.dtype in LOW else leaf
        if isinstance(leaf, np.ndarray | np.generic):
            return leaf.astype(np.float64) if leaf.dtype.kind == "f" else leaf
        if mindspore_kit.is_tensor(leaf):
            array = mindspore_kit.array_of(leaf)
            return (
                mindspore_kit.tensor(array.astype(np.float64)) if array.dtype.kind == "f" else leaf
            )
        return leaf

    return rebuilt(value, [one(leaf) for leaf in leaves_of(value)])
