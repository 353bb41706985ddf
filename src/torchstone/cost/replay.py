"""Equal layers are run twice, the first and the last; those between are copies of their pages.

A copied layer hands on tensors of the right shape and a node in the autograd graph, so that the
pass goes on around it. What was counted for the first and for the last must agree, in every
phase, or the whole run is done again without copies.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten

from torchstone.cost.books import Books, Scope
from torchstone.cost.layers import Stack, stacks
from torchstone.cost.ledger import BACKWARD, FORWARD, inside
from torchstone.cost.meta_mode import MetaMode
from torchstone.runtime.autocast import MetaAutocast
from torchstone.runtime.modules import Part, graph_task


class Disagreement(Exception):  # noqa: N818  a reason to run again, not an error
    """Layers that look the same do not behave the same."""


@dataclass
class _Moment:
    """Memory at one point of the run: all that is alive, and the activations among it."""

    live: int
    activations: int

    def __sub__(self, other: _Moment) -> _Moment:
        return _Moment(self.live - other.live, self.activations - other.activations)

    def __add__(self, other: _Moment) -> _Moment:
        return _Moment(self.live + other.live, self.activations + other.activations)


@dataclass
class _Copied:
    """How one stack is going: which layer stands for the others, and memory at each boundary."""

    stack: Stack
    first: int = -1
    """The first layer with such arguments. It is not copied: what it is given may live longer
    than what others are given (the caller still holds the embeddings)."""
    template: int = -1
    """The second one, which stands for those after it."""
    key: Any = None
    """Metadata of its arguments."""
    outputs: Any = None
    spec: Any = None
    starts: dict[int, _Moment] = field(default_factory=dict)
    entries: dict[int, _Moment] = field(default_factory=dict)
    """When the gradient of a layer's output is complete."""
    ends: dict[int, _Moment] = field(default_factory=dict)
    """When the gradient of a layer's input is complete."""
    gradient: Any = None
    """Metadata of the gradient that a layer hands on."""
    given: Any = None
    """Weak reference to the storage of the template's input."""
    keeps: bool = False
    """The template's input outlives its call: it is held for the backward."""
    keeps_output: bool = False
    """The template holds its own output for the backward (the result of a relu)."""
    copied: list[int] = field(default_factory=list)
    called: set[int] = field(default_factory=set)

    @property
    def last(self) -> int:
        return len(self.stack.layers) - 1

    def agrees(self) -> bool:
        """Do the template and the last layer change memory alike in the backward?"""
        changes = [
            self.ends[index] - self.entries[index]
            for index in (self.template, self.last)
            if index in self.ends and index in self.entries
        ]
        return len(changes) < 2 or changes[0] == changes[1]


class Replay:
    """The copies of one run."""

    def __init__(self, parts: list[Part], mode: MetaMode, books: Books) -> None:
        self.mode, self.books = mode, books
        self._stacks = [_Copied(stack) for stack in stacks(parts)]

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """While open, calls of layers in a stack come here first."""
        before: list[tuple[nn.Module, type]] = []
        try:
            for copied in self._stacks:
                for index, layer in enumerate(copied.stack.layers):
                    kind = type(layer)
                    before.append((layer, kind))
                    layer.__class__ = self._turned(kind, copied, index)
            yield
        finally:
            for layer, kind in before:
                layer.__class__ = kind

    def _turned(self, kind: type, copied: _Copied, index: int) -> type:
        original = kind.__call__

        def call(layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if graph_task() != -1:
                return original(layer, *args, **kwargs)  # a checkpoint runs its layer again
            return self._call(copied, index, original, layer, args, kwargs)

        return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})

    def _now(self) -> _Moment:
        return _Moment(self.mode.storages.live, self.mode.storages.activations)

    def _set(self, moment: _Moment) -> None:
        self.mode.storages.live = moment.live
        self.mode.storages.activations = moment.activations

    def _call(
        self, copied: _Copied, index: int, original: Any, layer: nn.Module, args: Any, kwargs: Any
    ) -> Any:
        if index in copied.called:
            raise Disagreement("a layer is called more than once")
        if any(isinstance(mode, MetaAutocast) for mode in _get_current_function_mode_stack()):
            raise Disagreement("autocast keeps what it casts until its region ends")
        copied.called.add(index)
        self._settle(copied, index)
        leaves, _ = tree_flatten((args, kwargs))
        key = _described(leaves)
        same = key is not None and key == copied.key
        if copied.copied and not same:
            raise Disagreement("layers of a stack get different arguments")
        copied.starts[index] = self._now()
        if same and copied.template >= 0 and index != copied.last:
            return self._copy(copied, index, layer, leaves)
        if not same:
            copied.key, copied.first, copied.template = key, index, -1
        elif copied.template < 0:
            copied.template = index
        given = _flowing(leaves)
        if given is not None and given.requires_grad:
            given.register_hook(lambda gradient: self._ended(copied, index, gradient))
        del leaves
        if copied.template != index:
            out = original(layer, *args, **kwargs)
        else:
            out = self._watched(copied, original, layer, args, kwargs)
            copied.given = _reference(given) if given is not None else None
            if given is None or not self._remember(copied, out, args, kwargs):
                copied.key = None
        if index == copied.last:
            flowing = _flowing(tree_flatten(out)[0])
            if flowing is not None and flowing.requires_grad:
                flowing.register_hook(lambda _: self._entered(copied, index))
        return out

    def _watched(
        self, copied: _Copied, original: Any, layer: nn.Module, args: Any, kwargs: Any
    ) -> Any:
        """Call the template, and see whether it holds what it gives for its own backward."""
        saved: set[int] = set()

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            saved.add(_address(tensor))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            out = original(layer, *args, **kwargs)
        copied.keeps_output = any(
            _address(item) in saved
            for item in tree_flatten(out)[0]
            if isinstance(item, torch.Tensor)
        )
        return out

    def _remember(self, copied: _Copied, out: Any, args: Any, kwargs: Any) -> bool:
        """What the template gave back; False when it cannot be given back again."""
        leaves, spec = tree_flatten(out)
        arguments = {id(item): i for i, item in enumerate(tree_flatten((args, kwargs))[0])}
        kept: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                if id(leaf) in arguments:
                    return False
                size = leaf.untyped_storage().nbytes()
                kept.append((leaf.shape, leaf.stride(), leaf.dtype, leaf.requires_grad, size))
            elif leaf is None or isinstance(leaf, (int, float, bool, str)):
                kept.append(leaf)
            elif id(leaf) in arguments:
                kept.append(_Argument(arguments[id(leaf)]))
            else:
                return False
        copied.outputs, copied.spec = kept, spec
        return sum(isinstance(item, tuple) for item in kept) == 1

    def _settle(self, copied: _Copied, index: int) -> None:
        """A layer begins: the one before it is over, and memory is what it left behind."""
        before = index - 1
        if before not in copied.starts:
            return
        if before == copied.template and copied.given is not None:
            copied.keeps = copied.given() is not None
        if before in copied.copied:
            template = copied.template
            change = copied.starts[template + 1] - copied.starts[template]
            self._set(copied.starts[before] + change)
            self.mode.note(self.books.scope(copied.stack.paths[before], FORWARD))

    def _copy(self, copied: _Copied, index: int, layer: nn.Module, leaves: list[Any]) -> Any:
        copied.copied.append(index)
        given = _flowing(leaves)
        assert given is not None
        scope = self.books.scope(copied.stack.paths[index], FORWARD)
        with _disable_current_modes():
            shape, stride, dtype, grad, size = next(
                item for item in copied.outputs if isinstance(item, tuple)
            )
            made = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
            self.mode.storages.made(made, size, scope)
            if grad:
                parameters = [item for item in layer.parameters() if item.requires_grad]
                made = _Node.apply(self, copied, index, made, given, *parameters)  # type: ignore[no-untyped-call]
        if given.requires_grad:
            given.register_hook(lambda gradient: self._ended(copied, index, gradient))
        filled = [
            made
            if isinstance(item, tuple)
            else leaves[item.place]
            if isinstance(item, _Argument)
            else item
            for item in copied.outputs
        ]
        return tree_unflatten(filled, copied.spec)

    def made(self, shape: Any) -> torch.Tensor:
        """A gradient that a copied layer would make."""
        size, stride, dtype = shape
        tensor = torch.empty_strided(size, stride, dtype=dtype, device="meta")
        self.mode.storages.watch(tensor, "activation", self.mode.paths.current)
        return tensor

    def gradients(self, copied: _Copied) -> list[bool]:
        """Which trainable parameters of a layer get a gradient: as in the last layer, which has
        been through its backward."""
        parameters = [p for p in copied.stack.layers[copied.last].parameters() if p.requires_grad]
        own = {p.grad.untyped_storage()._cdata for p in parameters if p.grad is not None}
        if len(own) != sum(p.grad is not None for p in parameters):
            raise Disagreement("gradients of a layer share memory")
        return [p.grad is not None for p in parameters]

    def _entered(self, copied: _Copied, index: int) -> None:
        copied.entries[index] = self._now()

    def _ended(self, copied: _Copied, index: int, gradient: torch.Tensor) -> None:
        if index in copied.copied:
            last = copied.last
            if last not in copied.ends:
                raise Disagreement("the backward does not pass through the last layer first")
            change = copied.ends[last] - copied.entries[last]
            self._set(copied.entries[index] + change)
            self.mode.note(self.books.scope(copied.stack.paths[index], BACKWARD))
        else:
            copied.gradient = (gradient.shape, gradient.stride(), gradient.dtype)
        copied.ends[index] = self._now()
        if index - 1 >= 0:
            copied.entries[index - 1] = self._now()

    def finish(self, held: dict[str, int]) -> dict[str, str]:
        """Check that the first and the last agree, then fill the pages of those between.
        Which layer stands for each copied one."""
        stands: dict[str, str] = {}
        for copied in self._stacks:
            if not copied.copied:
                continue
            paths = copied.stack.paths
            first, template, last = (
                paths[index] for index in (copied.first, copied.template, copied.last)
            )
            pages, others = self._pages(template), self._pages(last)
            work = _work(pages, template)
            if work != _work(others, last) or work != _work(self._pages(first), first):
                raise Disagreement(f"{first}, {template} and {last} do not agree")
            if not copied.agrees():
                raise Disagreement(f"{template} and {last} do not leave the same memory behind")
            for index in copied.copied:
                stands.update(self._fill(copied, index, pages, others, held))
        return stands

    def _pages(self, path: str) -> list[Scope]:
        return [scope for scope in self.books.scopes.values() if inside(scope.module, path)]

    def _fill(
        self,
        copied: _Copied,
        index: int,
        pages: list[Scope],
        others: list[Scope],
        held: dict[str, int],
    ) -> Iterator[tuple[str, str]]:
        paths = copied.stack.paths
        first, last, here = paths[copied.template], paths[copied.last], paths[index]
        for page in pages:
            if page.phase != FORWARD:
                continue
            scope = self.books.scope(here + page.module[len(first) :], FORWARD)
            scope.calls = page.calls
            scope.peak = _moved(
                page.peak, copied.starts[copied.template].live, copied.starts[index].live
            )
        for page in others:
            if page.phase == FORWARD:
                continue
            scope = self.books.scope(here + page.module[len(last) :], page.phase)
            scope.calls = page.calls
            if index in copied.entries and copied.last in copied.entries:
                base = copied.entries[copied.last].live
                scope.peak = _moved(page.peak, base, copied.entries[index].live)
        for path in [name for name in held if inside(name, here)]:
            del held[path]  # the copy's output, which inside the layer has another owner
        for path in [name for name in held if inside(name, first)]:
            held[here + path[len(first) :]] = held[path]
        yield here, first


def _moved(peak: int, base: int, here: int) -> int:
    return peak - base + here if peak else 0


@dataclass(frozen=True)
class _Argument:
    """An output that is one of the arguments (a cache that goes through the layers)."""

    place: int


class _Node(torch.autograd.Function):
    """A copied layer in the autograd graph."""

    @staticmethod
    def forward(
        ctx: Any, replay: Replay, copied: _Copied, index: int, made: torch.Tensor,
        given: torch.Tensor, *parameters: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        ctx.replay, ctx.copied = replay, copied
        ctx.held = given.detach() if copied.keeps else None
        ctx.shapes = [(p.shape, p.stride(), p.dtype) for p in parameters]
        ctx.wanted = given.requires_grad
        if copied.keeps_output:
            ctx.save_for_backward(made)
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        replay: Replay = ctx.replay
        ctx.held = None
        with _disable_current_modes():
            passed = replay.made(ctx.copied.gradient) if ctx.wanted else None
            given = replay.gradients(ctx.copied)
            made = [
                replay.made(shape) if has else None
                for has, shape in zip(given, ctx.shapes, strict=True)
            ]
            return (None, None, None, None, passed, *made)


def _work(pages: list[Scope], path: str) -> dict[Any, int]:
    """What the pages of a layer say, with its own path left out."""
    result: dict[Any, int] = {}
    for page in pages:
        for entry, calls in page.calls.items():
            key = (page.module[len(path) :], page.phase, entry.name, entry.dtype, entry.tally)
            result[key] = result.get(key, 0) + calls
    return result


def _described(leaves: list[Any]) -> Any:
    """Metadata of a layer's arguments; None when they hold something that cannot be compared."""
    parts: list[Any] = []
    flowing = 0
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            parts.append((leaf.shape, leaf.stride(), leaf.dtype, leaf.requires_grad))
            flowing += leaf.requires_grad
        elif leaf is None or isinstance(leaf, (int, float, bool, str)):
            parts.append(leaf)
        else:
            parts.append(id(leaf))
    return tuple(parts) if flowing <= 1 else None


def _flowing(leaves: list[Any]) -> torch.Tensor | None:
    """The tensor that goes from layer to layer: the first with a gradient, else the first."""
    tensors = [item for item in leaves if isinstance(item, torch.Tensor)]
    return next((item for item in tensors if item.requires_grad), tensors[0] if tensors else None)


def _reference(tensor: torch.Tensor) -> Any:
    return weakref.ref(tensor.untyped_storage())


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
