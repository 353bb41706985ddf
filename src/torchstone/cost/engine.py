"""One counted pass over a model on meta tensors: forward, backward, optimizer step."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import torch
import torch._dynamo  # some meta kernels load it; in the midst of a run that holds on to its frames
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map_only

from torchstone.core.text import Message
from torchstone.cost.books import Books, Scope
from torchstone.cost.facts import facts_of
from torchstone.cost.ledger import (
    BACKWARD,
    FORWARD,
    OPTIMIZER,
    RECOMPUTE,
    Assumption,
    Cost,
    Failure,
    Memory,
)
from torchstone.cost.meta_mode import MetaMode
from torchstone.cost.replay import Disagreement, Replay
from torchstone.runtime.attention import fused_attention
from torchstone.runtime.autocast import MetaAutocast, autocast_on_meta
from torchstone.runtime.content import ASSUMPTIONS, Content
from torchstone.runtime.eager import as_written, no_fast_path
from torchstone.runtime.modules import Part, Paths, parts_of
from torchstone.runtime.stand_ins import on_meta

Inputs = Any
"""A tensor, a tuple of positional arguments, a mapping of keyword arguments, or a function that
makes them afresh (for what a run changes, such as a cache)."""
MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


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
    model = unwrapped(model)
    cost = None
    with ALONE, _no_collector(), _same_random():
        if replay:
            with contextlib.suppress(Disagreement):
                cost = _run(model, inputs, train, optimizer, fused, autocast, True)
        if cost is None or (cost.failure and replay):
            cost = _run(model, inputs, train, optimizer, fused, autocast, False)
    return replace(cost, seconds=time.process_time() - start)


def _run(
    model: nn.Module,
    inputs: Inputs,
    train: bool,
    optimizer: MakeOptimizer | None,
    fused: bool,
    autocast: torch.dtype | None,
    replay: bool,
) -> Cost:
    if callable(inputs) and not isinstance(inputs, torch.Tensor):
        inputs = inputs()
    with torch.inference_mode(False):
        session = _Session(model, fused)
    failure = None
    with session.open(train, replay):
        args, kwargs = session.arguments(inputs)
        try:
            with MetaAutocast(autocast) if autocast else contextlib.nullcontext():
                session.forward(args, kwargs, train)
            if train:
                session.backward()
                if optimizer is not None:
                    session.step(optimizer)
        except Disagreement:
            raise
        except (
            Exception,
            SystemExit,
        ) as error:  # what the model raises is the finding; all before it counts
            failure = session.failed(error)
        return session.cost(train, failure)


ALONE = threading.RLock()
"""A run changes parts of torch while it lasts; two at once would not give them back."""


@contextlib.contextmanager
def _same_random() -> Iterator[None]:
    """The user's random numbers are not drawn."""
    state = torch.random.get_rng_state()
    try:
        yield
    finally:
        torch.random.set_rng_state(state)


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Memory must not depend on when the collector happens to run; and it is half of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def output_of(model: nn.Module, inputs: Inputs) -> Any:
    """What the forward of a model gives on meta tensors; what it raises passes through."""
    session = _Session(unwrapped(model), True)
    with ALONE, session.open(False, False):
        args, kwargs = session.arguments(inputs)
        session.forward(args, kwargs, False)
        return session.output


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside `torch.compile`'s wrapper."""
    return getattr(model, "_orig_mod", model)


@dataclass
class _Session:
    """The state of one run."""

    model: nn.Module
    fused: bool
    books: Books = field(default_factory=Books)
    assumptions: dict[tuple[str, str, tuple[tuple[str, str], ...]], int] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.parts = parts_of(self.model)
        self.paths: Paths[Scope] = Paths(
            self.parts,
            lambda path, again: self.books.scope(path, RECOMPUTE if again else FORWARD),
        )
        self.mode = MetaMode(self.paths, self.books, Content(self._assume))
        self.phase = FORWARD
        self.output: Any = None
        self.memory = Memory()
        self.held: dict[str, int] = {}
        self.replay: Replay | None = None
        self.stands: dict[str, str] = {}

    def _assume(self, kind: str, args: Mapping[str, str]) -> None:
        key = (kind, self.paths.current.module, tuple(args.items()))
        self.assumptions[key] = self.assumptions.get(key, 0) + 1

    @contextlib.contextmanager
    def open(self, train: bool, replay: bool) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(on_meta(self.parts, self.mode.content))
            self.model.train(train)  # what it was comes back with the model's other attributes
            if self.fused:
                stack.enter_context(fused_attention())
            stack.enter_context(
                autocast_on_meta(lambda dtype: self._assume("autocast", {"dtype": dtype}))
            )
            stack.enter_context(as_written())
            stack.enter_context(no_fast_path())
            stack.enter_context(self.paths.follow())
            stack.enter_context(torch.set_grad_enabled(train))
            self.paths.own()
            if replay:
                self.replay = Replay(self.parts, self.mode, self.books)
                stack.enter_context(self.replay.open())
            self.parameters = _held(self.parts, "_parameters")
            self.buffers = _held(self.parts, "_buffers")
            for tensor in (*self.parameters, *self.buffers):
                self.mode.storages.watch(tensor, "static", None)
            yield

    def arguments(self, inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if isinstance(inputs, Mapping):
            args: tuple[Any, ...] = ()
            kwargs: dict[str, Any] = dict(inputs)
        elif isinstance(inputs, (tuple, list)):
            args, kwargs = tuple(inputs), {}
        else:
            args, kwargs = (inputs,), {}
        adopt = self.mode.content.adopt
        seen: dict[int, torch.Tensor] = {}  # what is passed twice is one tensor

        def one(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in seen:
                seen[id(tensor)] = _input(tensor, adopt)
            return seen[id(tensor)]

        made = tree_map_only(torch.Tensor, one, (args, kwargs))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.mode.storages.watch(tensor, "input", None)
        return made  # type: ignore[no-any-return]

    def forward(self, args: tuple[Any, ...], kwargs: dict[str, Any], train: bool) -> None:
        storages = self.mode.storages
        with self.mode:
            self.output = self.model(*args, **kwargs)
        if not train:
            return
        for kind, owner, size in storages.alive():
            if kind == "activation":
                self.held[owner.module] = self.held.get(owner.module, 0) + size

    def backward(self) -> None:
        self.phase = BACKWARD
        storages = self.mode.storages
        hooks = [
            item.register_post_accumulate_grad_hook(self._accumulated)
            for item in self.parameters
            if item.requires_grad
        ]
        targets, gradients = _ends(self.output)
        if not targets:
            raise NoGradientError(
                "no output of the forward has a gradient: nothing to go back from"
            )
        for gradient in gradients:
            if gradient is not None:
                storages.watch(gradient, "activation", self.paths.current)
        try:
            with self.mode:
                torch.autograd.backward(targets, gradients)
        finally:
            for hook in hooks:
                hook.remove()
        del targets, gradients
        self.output = None
        storages.recount()

    def _accumulated(self, parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        self.mode.storages.turn(parameter.grad, "gradient")

    def step(self, make: MakeOptimizer) -> None:
        self.phase = OPTIMIZER
        trainable = [item for item in self.parameters if item.requires_grad]
        if not trainable:
            return
        optimizer = make(trainable)
        self._follow_states(optimizer)
        self.optimizer = optimizer  # its state lives as long as the run
        first, later = Scope("", OPTIMIZER), self.books.scope("", OPTIMIZER)
        self._stepped(first)  # makes the state: those after it do not, and they are the cost
        self._stepped(later)
        later.peak = max(first.peak, later.peak)
        self._turn_states(optimizer)

    def _stepped(self, scope: Scope) -> None:
        before = self.paths.current
        self.paths.current = scope
        try:
            with self.mode:
                self.optimizer.step()
        finally:
            self.paths.current = before

    def _follow_states(self, optimizer: torch.optim.Optimizer) -> None:
        """What the optimizer makes first is its state, before it makes temporary tensors."""
        begin = getattr(optimizer, "_init_group", None)
        if begin is None:
            return

        def begun(*args: Any, **kwargs: Any) -> Any:
            result = begin(*args, **kwargs)
            self._turn_states(optimizer)
            return result

        optimizer._init_group = begun  # type: ignore[attr-defined]

    def _turn_states(self, optimizer: torch.optim.Optimizer) -> None:
        for state in optimizer.state.values():
            for tensor in state.values():
                if isinstance(tensor, torch.Tensor) and tensor.is_meta:
                    self.mode.storages.turn(tensor, "optimizer")

    def failed(self, error: BaseException) -> Failure:
        try:
            said = str(error).strip().splitlines() or [""]
        except Exception:  # an error that cannot even be shown
            said = ["(its text cannot be shown)"]
        module = self.paths.failed or (self.paths.of_node() if self.phase == BACKWARD else "")
        return Failure(module, self.mode.last, f"{type(error).__name__}: {said[0]}", self.phase)

    def cost(self, train: bool, failure: Failure | None) -> Cost:
        if self.replay and not failure:
            self.stands = self.replay.finish(self.held)
        self._say_what_was_taken_for_granted()
        return Cost(
            entries=self.books.entries(),
            modules=facts_of(self.parts, self.books, self.held, self.stands),
            memory=self._memory(train),
            uncounted=self.books.uncounted(),
            assumptions=tuple(
                Assumption(kind, Message(kind, ASSUMPTIONS[kind], dict(args)), where, times)
                for (kind, where, args), times in self.assumptions.items()
            ),
            failure=failure,
            train=train,
        )

    def _say_what_was_taken_for_granted(self) -> None:
        counts = Counter(self.stands.values())
        for path, count in counts.items():
            self.assumptions["copied-layers", path, (("count", str(count)),)] = 1
        for scope in self.books.scopes.values():
            for entry, calls in scope.calls.items():
                kernel = _FUSED.get(entry.name)
                if kernel and scope.phase == FORWARD:
                    key = ("fused-attention", scope.module, (("kernel", kernel),))
                    self.assumptions[key] = self.assumptions.get(key, 0) + calls

    def _memory(self, train: bool) -> Memory:
        storages = self.mode.storages
        held = sum(self.held.values())
        if not train:
            static = storages.size_of("static") + storages.size_of("input")
            held = max(self.books.peaks().get(FORWARD, static) - static, 0)
        return Memory(
            parameters=sum(map(_bytes, self.parameters)),
            buffers=sum(map(_bytes, self.buffers)),
            gradients=storages.size_of("gradient"),
            optimizer=storages.size_of("optimizer"),
            inputs=storages.size_of("input"),
            activations=held,
            peaks=self.books.peaks(),
            timeline=thinned(self.mode.timeline),
        )


_FUSED = {
    "aten._scaled_dot_product_flash_attention": "flash",
    "aten._scaled_dot_product_efficient_attention": "memory-efficient",
}


def _held(parts: list[Part], home: str) -> list[Any]:
    """The tensors that a model's modules hold, each once."""
    found: dict[int, Any] = {}
    for _, module in parts:
        for item in vars(module)[home].values():
            if item is not None:
                found[id(item)] = item
    return list(found.values())


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _input(tensor: torch.Tensor, adopt: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A stand-in for an input. Of whole numbers (tokens, positions) the content may matter; what
    floats hold is a sample, and a cost that hangs on it would be no cost of the model."""
    if tensor.is_meta:
        return tensor
    if not tensor.is_floating_point():
        return adopt(tensor)
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return made.requires_grad_(tensor.requires_grad)


def _ends(output: Any) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    """Where the backward starts: the loss when there is one, else every output with a gradient."""
    loss = getattr(output, "loss", None)
    if loss is None and isinstance(output, Mapping):
        loss = output.get("loss")
    if isinstance(loss, torch.Tensor) and loss.requires_grad and not loss.dim():
        return [loss], [None]
    found = list(_tensors_in(output))
    found = [item for item in found if item.requires_grad]
    return found, [torch.empty_like(item) if item.dim() else None for item in found]


def _tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Tensors of an output, also inside of dataclasses and plain objects."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors_in(item, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _tensors_in(item, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type) and depth < _DEEP:
        for item in fields(value):
            yield from _tensors_in(getattr(value, item.name), depth + 1)


_DEEP = 8


class NoGradientError(RuntimeError):
    """A training step was asked for, and the forward gives nothing to differentiate."""


def thinned(
    taken: list[tuple[str, int, int]], most: int = 600
) -> tuple[tuple[int, str, int, int], ...]:
    """At most so many points of a curve, numbered; the highest of each stretch is the one that
    stays."""
    points = [(number, *point) for number, point in enumerate(taken)]
    step = max(1, -(-len(points) // most))
    if step == 1:
        return tuple(points)
    return tuple(
        max(points[i : i + step], key=lambda point: point[2]) for i in range(0, len(points), step)
    )
