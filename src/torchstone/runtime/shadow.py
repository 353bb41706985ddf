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
_CPU = torch.device("cpu")


class Unknown(Exception):  # noqa: N818  an answer, not an error
    """The content of a tensor that was asked for is not known."""


class Shadows:
    """The known contents, by storage: views share them as they share memory."""

    def __init__(self) -> None:
        self._buffers: dict[int, torch.Tensor] = {}
        self._guards: dict[int, weakref.ref[Any]] = {}
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
        if key not in self._buffers and tensor.is_floating_point():
            self.floats += 1
        self._buffers[key] = buffer
        floating = tensor.is_floating_point()

        def gone(_: Any) -> None:
            self._forget(key, floating)

        self._guards[key] = weakref.ref(storage, gone)

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
