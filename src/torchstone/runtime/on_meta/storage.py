"""Memory in use, from the life of tensor storages: exact, and cheap enough for every operator."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch

KINDS = ("static", "gradient", "optimizer", "activation")


class _Life(weakref.ref):  # type: ignore[type-arg]
    """One storage: its size and whose it is. The reference lives as long as the storage."""

    __slots__ = ("key", "kind", "owner", "size")
    key: int
    kind: str
    owner: Any
    size: int


class Storages:
    """What is alive now. `live` counts every byte, `activations` those made by the run itself."""

    def __init__(self) -> None:
        self.live = 0
        self.activations = 0
        self._alive: dict[int, _Life] = {}

    def watch(self, tensor: torch.Tensor, kind: str, owner: Any) -> int:
        """Count a tensor's storage from now on, once; the bytes that were added."""
        if tensor.layout is not torch.strided or tensor.is_nested:
            return 0  # sparse and nested tensors have no storage of their own
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._alive:
            return 0
        life = _Life(storage, self._gone)
        life.key, life.kind, life.owner = key, kind, owner
        life.size = size = storage.nbytes()
        self._alive[key] = life
        self.live += size
        if kind == "activation":
            self.activations += size
        return size

    def made(self, tensor: torch.Tensor, size: int, owner: Any) -> int:
        """The short way for a fresh tensor of known size; how much is alive with it."""
        storage = tensor.untyped_storage()
        life = _Life(storage, self._gone)
        key = life.key = storage._cdata
        life.kind, life.owner, life.size = "activation", owner, size
        self._alive[key] = life
        self.activations += size
        self.live = live = self.live + size
        return live

    def _gone(self, life: _Life) -> None:
        if self._alive.get(life.key) is life:
            del self._alive[life.key]
        self.live -= life.size
        if life.kind == "activation":
            self.activations -= life.size

    def turn(self, tensor: torch.Tensor, kind: str) -> int:
        """What was an activation has become something else: a gradient, a state."""
        life = self._alive.get(tensor.untyped_storage()._cdata)
        if life is None:
            return self.watch(tensor, kind, None)
        if life.kind == "activation":
            self.activations -= life.size
            life.kind = kind
        return life.size

    def close(self) -> None:
        """No longer look: what is alive now may go unseen."""
        self._alive.clear()

    def recount(self) -> None:
        """Take the sums anew from what is really alive."""
        self.live = sum(life.size for life in self._alive.values())
        self.activations = self.size_of("activation")

    def alive(self) -> Iterable[tuple[str, Any, int]]:
        return [(life.kind, life.owner, life.size) for life in self._alive.values()]

    def size_of(self, kind: str) -> int:
        return sum(life.size for life in self._alive.values() if life.kind == kind)
