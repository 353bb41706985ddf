"""Real tensors of the user that a run writes to are afterwards what they were.

Parameters, buffers and inputs have stand-ins. A tensor that a module keeps as a plain attribute
has none: code may ask it for values, so it stays real, and what is written to it is taken back.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch


class Kept:
    """What real tensors held before a run first wrote to them."""

    def __init__(self) -> None:
        self._contents: dict[int, tuple[weakref.ref[Any], torch.UntypedStorage]] = {}
        self._shapes: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def before_write(self, value: Any) -> None:
        """A real tensor, or a list of some, is about to be written to."""
        if isinstance(value, (list, tuple)):
            for item in value:
                self.before_write(item)
        elif isinstance(value, torch.Tensor) and not value.is_meta and _plain(value):
            storage = value.untyped_storage()
            key = storage._cdata
            if key not in self._contents:
                gone = weakref.ref(storage, lambda _: self._contents.pop(key, None) and None)
                self._contents[key] = (gone, storage.clone())

    def before_reshape(self, tensor: torch.Tensor) -> None:
        """A real tensor is about to get another shape, in place."""
        self.before_write(tensor)
        key = id(tensor)
        if not tensor.is_meta and _plain(tensor) and key not in self._shapes:
            gone = weakref.ref(tensor, lambda _: self._shapes.pop(key, None) and None)
            shape = (tensor.untyped_storage(), tensor.storage_offset(), tensor.shape)
            self._shapes[key] = (gone, (*shape, tensor.stride()))

    def restore(self) -> None:
        """Give every tensor that still lives what it held."""
        for reference, before in list(self._contents.values()):
            storage = reference()
            if storage is not None:
                if storage.nbytes() != before.nbytes():
                    storage.resize_(before.nbytes())
                storage.copy_(before)
        for reference, shape in list(self._shapes.values()):
            tensor = reference()
            if tensor is not None:
                with torch.no_grad():
                    tensor.set_(*shape)


def _plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested
