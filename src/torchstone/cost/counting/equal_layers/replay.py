"""Equal layers are run twice, the first and the last; those between are copies of their pages.

A copied layer hands on tensors of the right shape and a node in the autograd graph, so that the
pass goes on around it. What was counted for the first and for the last must agree, in every
phase, or the whole run is done again without copies.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch
from torch import nn

from torchstone.cost.counting.equal_layers.copied import (
    Argument,
    Copied,
    Disagreement,
    Moment,
    address,
    described,
    flowing,
    reference,
)
from torchstone.cost.counting.equal_layers.layers import has_hooks, stacks
from torchstone.cost.counting.meta_mode import MetaMode
from torchstone.cost.records.books import Books
from torchstone.cost.records.ledger import BACKWARD, FORWARD
from torchstone.observe.compat.autograd import graph_task
from torchstone.observe.compat.modes import disable_modes, function_modes
from torchstone.observe.compat.trees import tree_flatten, tree_unflatten
from torchstone.observe.undo import Undo
from torchstone.runtime.modules import Part
from torchstone.runtime.on_meta.autocast import MetaAutocast


class Replay:
    """The copies of one run."""

    def __init__(self, parts: list[Part], mode: MetaMode, books: Books) -> None:
        self.mode, self.books = mode, books
        self.copies = [Copied(stack) for stack in stacks(parts)]

    def open(self, undo: Undo) -> None:
        """From now on calls of layers in a stack come here first."""
        for copied in self.copies:
            kind = type(copied.stack.layers[0])
            turned = self._turned(kind, copied)
            for layer in copied.stack.layers:
                undo.later(functools.partial(setattr, layer, "__class__", kind))
                layer.__class__ = turned

    def _turned(self, kind: type, copied: Copied) -> type:
        original = kind.__call__
        places = {id(layer): index for index, layer in enumerate(copied.stack.layers)}
        thread = threading.get_ident()

        def call(layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if graph_task() != -1 or threading.get_ident() != thread:
                return original(layer, *args, **kwargs)  # a checkpoint runs its layer again
            return self._call(copied, places[id(layer)], original, layer, args, kwargs)

        return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})

    def _now(self) -> Moment:
        return Moment(self.mode.storages.live, self.mode.storages.activations)

    def _set(self, moment: Moment) -> None:
        self.mode.storages.live = moment.live
        self.mode.storages.activations = moment.activations

    def _call(
        self, copied: Copied, index: int, original: Any, layer: nn.Module, args: Any, kwargs: Any
    ) -> Any:
        if not copied.called:
            copied.hooked = any(map(has_hooks, layer.modules()))
        if copied.hooked:  # a copy would not call them
            return original(layer, *args, **kwargs)
        if index in copied.called:
            raise Disagreement("a layer is called more than once")
        if any(isinstance(mode, MetaAutocast) for mode in function_modes()):
            raise Disagreement("autocast keeps what it casts until its region ends")
        copied.called.add(index)
        self._settle(copied, index)
        leaves, _ = tree_flatten((args, kwargs))
        key = described(leaves)
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
        given = flowing(leaves)
        if given is not None and given.requires_grad:
            given.register_hook(lambda gradient: self._ended(copied, index, gradient))
        del leaves
        if copied.template != index:
            out = original(layer, *args, **kwargs)
        else:
            out = self._watched(copied, original, layer, args, kwargs)
            copied.given = reference(given) if given is not None else None
            if given is None or not self._remember(copied, out, args, kwargs):
                copied.key = None
        if index == copied.last:
            handed_on = flowing(tree_flatten(out)[0])
            if handed_on is not None and handed_on.requires_grad:
                handed_on.register_hook(lambda _: self._entered(copied, index))
        return out

    def _watched(
        self, copied: Copied, original: Any, layer: nn.Module, args: Any, kwargs: Any
    ) -> Any:
        """Call the template, and see whether it holds what it gives for its own backward."""
        saved: set[int] = set()

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            saved.add(address(tensor))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            out = original(layer, *args, **kwargs)
        copied.keeps_output = any(
            address(item) in saved
            for item in tree_flatten(out)[0]
            if isinstance(item, torch.Tensor)
        )
        return out

    def _remember(self, copied: Copied, out: Any, args: Any, kwargs: Any) -> bool:
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
                kept.append(Argument(arguments[id(leaf)]))
            else:
                return False
        copied.outputs, copied.spec = kept, spec
        return sum(isinstance(item, tuple) for item in kept) == 1

    def _settle(self, copied: Copied, index: int) -> None:
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

    def _copy(self, copied: Copied, index: int, layer: nn.Module, leaves: list[Any]) -> Any:
        copied.copied.append(index)
        given = flowing(leaves)
        assert given is not None
        scope = self.books.scope(copied.stack.paths[index], FORWARD)
        with disable_modes():
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
            if isinstance(item, Argument)
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

    def gradients(self, copied: Copied) -> list[bool]:
        """Which trainable parameters of a layer get a gradient: as in the last layer, which has
        been through its backward."""
        parameters = [p for p in copied.stack.layers[copied.last].parameters() if p.requires_grad]
        own = {p.grad.untyped_storage()._cdata for p in parameters if p.grad is not None}
        if len(own) != sum(p.grad is not None for p in parameters):
            raise Disagreement("gradients of a layer share memory")
        return [p.grad is not None for p in parameters]

    def _entered(self, copied: Copied, index: int) -> None:
        copied.entries[index] = self._now()

    def _ended(self, copied: Copied, index: int, gradient: torch.Tensor) -> None:
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


class _Node(torch.autograd.Function):
    """A copied layer in the autograd graph."""

    @staticmethod
    def forward(
        ctx: Any, replay: Replay, copied: Copied, index: int, made: torch.Tensor,
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
        with disable_modes():
            passed = replay.made(ctx.copied.gradient) if ctx.wanted else None
            given = replay.gradients(ctx.copied)
            made = [
                replay.made(shape) if has else None
                for has, shape in zip(given, ctx.shapes, strict=True)
            ]
            return (None, None, None, None, passed, *made)
