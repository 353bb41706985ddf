"""The state of one counted pass on meta tensors, and its phases."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchstone.cost.counting.assumed import Assumed
from torchstone.cost.counting.ends import Arguments, Inputs, arguments_of, ends_of
from torchstone.cost.counting.equal_layers.filling import fill
from torchstone.cost.counting.equal_layers.replay import Replay
from torchstone.cost.counting.meta_mode import MetaMode
from torchstone.cost.counting.stepping import MakeOptimizer, step_twice
from torchstone.cost.records.books import Books, Scope
from torchstone.cost.records.facts import facts_of
from torchstone.cost.records.idle import idle_modules, observe_parameters
from torchstone.cost.records.ledger import (
    BACKWARD,
    FORWARD,
    OPTIMIZER,
    Cost,
    Failure,
    Memory,
    thinned,
)
from torchstone.observe.compat.modes import set_grad_enabled
from torchstone.observe.compat.trees import tree_leaves
from torchstone.observe.undo import Undo
from torchstone.runtime.modules import Part, Paths, parts_of
from torchstone.runtime.on_meta.attention import fused_attention
from torchstone.runtime.on_meta.autocast import autocast_on_meta
from torchstone.runtime.on_meta.branches import as_plain_code
from torchstone.runtime.on_meta.content import Content
from torchstone.runtime.on_meta.eager import as_written, no_fast_path
from torchstone.runtime.on_meta.stand_ins import on_meta
from torchstone.runtime.on_meta.threads import watch_threads


class Session:
    """One run: `open` it, then `forward`, `backward`, `step`; `cost` is what was counted."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parts = parts_of(model)
        self.books = Books()
        self.paths: Paths[Scope] = Paths(self.parts, self.books.place)
        self.assumed = Assumed(self.paths)
        self.mode = MetaMode(self.paths, self.books, Content(self.assumed.tell))
        self.phase = FORWARD
        self.output: Any = None
        self.held: dict[str, int] = {}
        """Bytes kept for the backward, by module."""
        self.replay: Replay | None = None
        self.asked: set[int] = set()
        """Ids of the parameters that the model's code asked for."""
        self.parameters: list[nn.Parameter] = []
        self.buffers: list[torch.Tensor] = []

    def open(self, undo: Undo, train: bool, replay: bool, fused: bool) -> None:
        """Put the model on meta and torch in the state in which everything is seen."""
        undo.later(self.mode.storages.close)
        undo.later(self.mode.kept.restore)
        on_meta(undo, self.parts, self.mode.content)
        self.model.train(train)  # what it was comes back with the model's other attributes
        if fused:
            fused_attention(undo)
        autocast_on_meta(undo, self.assumed.autocast)
        as_written(undo)
        as_plain_code(undo, self.mode.content.decide)
        no_fast_path(undo)
        watch_threads(undo, self.paths.missed)
        self.paths.follow(undo)
        set_grad_enabled(train)
        self.paths.own()
        if replay:
            self.replay = Replay(self.parts, self.mode, self.books)
            self.replay.open(undo)
        self.asked = observe_parameters(undo, self.parts)
        self.parameters = _held(self.parts, "_parameters")
        self.buffers = _held(self.parts, "_buffers")
        for tensor in (*self.parameters, *self.buffers):
            self.mode.storages.watch(tensor, "static", None)

    def arguments(self, inputs: Inputs) -> Arguments:
        made = arguments_of(inputs, self.mode.content.adopt)
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.mode.storages.watch(tensor, "input", None)
        return made

    def forward(self, arguments: Arguments, train: bool) -> None:
        args, kwargs = arguments
        with self.mode:
            self.output = self.model(*args, **kwargs)
        if not train:
            return
        for kind, owner, size in self.mode.storages.alive():
            if kind == "activation":
                self.held[owner.module] = self.held.get(owner.module, 0) + size

    def backward(self) -> None:
        self.phase = BACKWARD
        storages = self.mode.storages

        def accumulated(parameter: torch.Tensor) -> None:
            assert parameter.grad is not None
            storages.turn(parameter.grad, "gradient")

        hooks = [
            item.register_post_accumulate_grad_hook(accumulated)
            for item in self.parameters
            if item.requires_grad
        ]
        targets, gradients = ends_of(self.output)
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

    def step(self, make: MakeOptimizer) -> None:
        """One step of an optimizer over what can be trained."""
        self.phase = OPTIMIZER
        trainable = [item for item in self.parameters if item.requires_grad]
        if trainable:
            # its state lives as long as the run
            self.optimizer = make(trainable)
            step_twice(self.optimizer, self.mode, self.books)

    def failed(self, error: BaseException) -> Failure:
        try:
            said = str(error).strip().splitlines() or [""]
        except Exception:  # an error that cannot even be shown
            said = ["(its text cannot be shown)"]
        module = self.paths.failed or (self.paths.of_node() if self.phase == BACKWARD else "")
        return Failure(module, self.mode.last, f"{type(error).__name__}: {said[0]}", self.phase)

    def cost(self, train: bool, failure: Failure | None) -> Cost:
        stands: dict[str, str] = {}
        if self.replay and not failure:
            stands = fill(self.replay.copies, self.books, self.held)
        entries = self.books.entries()
        ran = {key.module for key in entries if key.phase != OPTIMIZER}
        return Cost(
            entries=entries,
            idle=idle_modules(self.parts, self.asked, ran, stands),
            modules=facts_of(self.parts, self.books, self.held, stands),
            memory=self._memory(train),
            uncounted=self.books.uncounted(),
            assumptions=self.assumed.all(self.books, stands),
            failure=failure,
            elsewhere=dict(self.paths.elsewhere),
            train=train,
        )

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
