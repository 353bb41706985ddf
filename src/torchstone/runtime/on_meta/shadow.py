"""Small values that a meta run needs to know: masks, positions, routing.

A meta tensor has a shape and no content, so code that asks for content (`.item()`, `nonzero`,
`tolist`) cannot go on. Much of what is asked for is known all the same: it comes from `arange`,
`ones`, shapes. Those tensors carry a shadow, a real tensor on the CPU that goes through the same
operators. Where content would come from the data (which expert a token goes to) a balanced choice
is made and stated.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import torch

LIMIT = 1 << 22
"""Elements above which a value is not followed."""
FLOAT_LIMIT = 1 << 16
ANSWERS_LIMIT = 1 << 26
"""Bytes of contents that are remembered."""
_CPU = torch.device("cpu")


class Unknown(Exception):  # noqa: N818  an answer, not an error
    """The content of a tensor that was asked for is not known."""


class Shadows:
    """The known contents, by storage: views share them as they share memory.

    Equal layers ask for equal contents, so an answer is worked out once and then shared (`recall`,
    `keep`); what is shared is copied before it is written to (`before_write`).
    """

    def __init__(self) -> None:
        self._buffers: dict[int, torch.Tensor] = {}
        self._guards: dict[int, weakref.ref[Any]] = {}
        self._answers: dict[Any, tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor | None, ...]]]
        self._answers = {}
        """What went in and came out, by key: it is held, so that its address stays its own."""
        self._room = ANSWERS_LIMIT
        self._shared: set[int] = set()
        """Storages whose buffer others may have too."""
        self.floats = 0
        """How many known tensors are no integers: most runs have none, and skip the question."""

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._buffers

    def set(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """From now on `tensor` (all of its storage) is known to hold `value`."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        size = storage.nbytes() // tensor.element_size()
        buffer = torch.empty(size, dtype=tensor.dtype, device=_CPU)
        shaped = torch.as_strided(buffer, tensor.shape, tensor.stride(), tensor.storage_offset())
        shaped.copy_(value)
        self._shared.discard(key)
        self._know(storage, buffer)

    def _know(self, storage: Any, buffer: torch.Tensor) -> None:
        key = storage._cdata
        floating = buffer.is_floating_point()
        if key not in self._buffers and floating:
            self.floats += 1
        self._buffers[key] = buffer

        def gone(_: Any) -> None:
            self._forget(key, floating)

        self._guards[key] = weakref.ref(storage, gone)

    def recall(self, key: Any, outputs: list[torch.Tensor]) -> bool:
        """Give outputs the contents that they had when the same was asked before."""
        found = self._answers.get(key)
        if found is None:
            return False
        for tensor, buffer in zip(outputs, found[1], strict=True):
            if buffer is not None:
                storage = tensor.untyped_storage()
                self._know(storage, buffer)
                self._shared.add(storage._cdata)
        return True

    def keep(self, key: Any, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> None:
        """Remember what came out, for `recall`, as long as there is room."""
        places = [[item.untyped_storage()._cdata for item in both] for both in (inputs, outputs)]
        went_in, came_out = ([self._buffers.get(place) for place in both] for both in places)
        known = [item for item in (*went_in, *came_out) if item is not None]
        size = sum(item.numel() * item.element_size() for item in known)
        if size > self._room:
            return
        self._room -= size
        self._answers[key] = (tuple(item for item in went_in if item is not None), tuple(came_out))
        self._shared.update(*places)

    def names(self, tensors: list[torch.Tensor]) -> tuple[tuple[int, int], ...] | None:
        """What stands for the known contents of tensors in a key; None when one is unknown."""
        found: list[tuple[int, int]] = []
        for tensor in tensors:
            buffer = self._buffers.get(tensor.untyped_storage()._cdata)
            if buffer is None or buffer.dtype != tensor.dtype:
                return None
            found.append((id(buffer), int(tensor.storage_offset())))
        return tuple(found)

    def before_write(self, tensor: torch.Tensor) -> None:
        """From now on the content of `tensor` is its own."""
        key = tensor.untyped_storage()._cdata
        if key in self._shared:
            self._shared.discard(key)
            self._buffers[key] = self._buffers[key].clone()

    def get(self, tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.device == _CPU:
            return tensor
        buffer = self._buffers.get(tensor.untyped_storage()._cdata)
        if buffer is None or buffer.dtype != tensor.dtype:
            return None
        return torch.as_strided(buffer, tensor.shape, tensor.stride(), tensor.storage_offset())

    def forget(self, tensor: torch.Tensor) -> None:
        key = tensor.untyped_storage()._cdata
        if key in self._buffers:
            self._forget(key, tensor.is_floating_point())

    def _forget(self, key: int, floating: bool) -> None:
        if self._buffers.pop(key, None) is not None and floating:
            self.floats -= 1
        self._guards.pop(key, None)
        self._shared.discard(key)

    def arguments(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """The same arguments with known contents in place of meta tensors; None if one is not."""
        try:
            return self._known(args), {key: self._known(value) for key, value in kwargs.items()}
        except Unknown:
            return None

    def _known(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            found = self.get(value)
            if found is None:
                raise Unknown
            return found
        if isinstance(value, (list, tuple)):
            return type(value)([self._known(item) for item in value])
        return value


@functools.lru_cache(maxsize=64)
def balanced(shape: torch.Size, choices: int) -> torch.Tensor:
    """Choices dealt out in turn along the rows: every one is taken equally often."""
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, device=_CPU) % max(choices, 1)).reshape(shape)
