"""Shadow memory: for every storage of the low-precision run, the same numbers in high precision.

The key is the storage, not the tensor: views, saved tensors, in-place writes through views and `.grad`
need no code of their own, and a shadow dies with the last tensor of its storage.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(slots=True)
class Shadow:
    """The high-precision numbers of one storage, and how far the low ones are from them."""

    flat: torch.Tensor
    """One element for each element of the storage."""
    item_bytes: int
    error: float
    """Norm of the difference over the norm, when it was last written."""
    entered: float
    """The largest error among what it was made from, at the place that made it: what came from other places."""
    norm: float
    site: int
    """Which place of the program wrote it; -1 for what came from outside."""
    origin: int = -1
    """Which place a zero in it comes from: operators that only pass zeros on keep that of their input."""
    guard: Any = None
    borrowed: bool = False
    """`flat` is the user's own tensor, which is copied before it is written to."""


class ShadowMemory:
    """All shadows of one run."""

    def __init__(self, high: torch.dtype) -> None:
        self.high = high
        self._shadows: dict[int, Shadow] = {}
        self._originals: dict[int, tuple[torch.Tensor, bool]] = {}
        self.resets: dict[str, int] = {}
        """How often a storage was read in another way than it was written, by operator."""

    def remember_original(self, low: torch.Tensor, original: torch.Tensor, written: bool) -> None:
        """Parameters and inputs have their exact values already; a shadow is made at first use."""
        self._originals[low.untyped_storage()._cdata] = (original, written)

    def find(self, tensor: torch.Tensor) -> Shadow | None:
        """The shadow of the tensor's storage, if there is one and it still fits."""
        storage = tensor.untyped_storage()
        found = self._shadows.get(storage._cdata)
        if found is None:
            return self._from_original(tensor, storage)
        if found.item_bytes != tensor.element_size() or (
            found.flat.numel() != storage.nbytes() // found.item_bytes
        ):
            del self._shadows[storage._cdata]  # seen as another type, or resized
            self.resets[str(tensor.dtype)] = self.resets.get(str(tensor.dtype), 0) + 1
            return None
        return found

    def _from_original(self, tensor: torch.Tensor, storage: Any) -> Shadow | None:
        known = self._originals.get(storage._cdata)
        if known is None:
            return None
        original, written = known
        wide = self.wide(original.dtype)
        values = original.detach().to(wide)
        borrowed = values.data_ptr() == original.data_ptr()
        if written and borrowed:
            values = values.clone()  # a buffer that the run writes to; the user's stays as it is
        made = self._keep(tensor, storage, values.reshape(-1), 0.0, 0.0, -1)
        made.borrowed = borrowed and not written
        return made

    def wide(self, dtype: torch.dtype) -> torch.dtype:
        """The type in which the shadow of such a tensor is kept."""
        if dtype.is_complex:
            return torch.complex128 if self.high == torch.float64 else torch.complex64
        return self.high if dtype.is_floating_point else dtype

    def value(self, tensor: torch.Tensor) -> torch.Tensor:
        """The high-precision numbers of a tensor; its own where nothing else is known."""
        found = self.find(tensor)
        if found is None:
            wide = self.wide(tensor.dtype)
            return tensor if tensor.dtype == wide else tensor.to(wide)
        return found.flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def writable(self, tensor: torch.Tensor, site: int) -> torch.Tensor:
        """The same, in memory that the shadow run may write to."""
        found = self.find(tensor)
        if found is None:
            storage = tensor.untyped_storage()
            size = storage.nbytes() // tensor.element_size()
            whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
                storage, 0, (size,), (1,)
            )
            flat = whole.to(self.wide(tensor.dtype), copy=True)
            found = self._keep(tensor, storage, flat, 0.0, 0.0, site)
        elif found.borrowed:
            found.flat, found.borrowed = found.flat.clone(), False
        return found.flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def set(
        self,
        tensor: torch.Tensor,
        value: torch.Tensor,
        error: float,
        norm: float,
        site: int,
        origin: int = -1,
        entered: float = 0.0,
    ) -> None:
        """A fresh tensor of the low run has this shadow."""
        storage = tensor.untyped_storage()
        size = storage.nbytes() // max(tensor.element_size(), 1)
        fits = value.numel() == size and value.stride() == tensor.stride()
        if fits and value.untyped_storage().nbytes() == size * value.element_size():
            flat = value.as_strided((size,), (1,), 0)
        else:
            flat = torch.zeros(size, dtype=value.dtype, device=value.device)
            flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset()).copy_(value)
        made = self._keep(tensor, storage, flat, error, norm, site)
        made.entered = entered
        made.origin = site if origin < 0 else origin

    def _keep(
        self, tensor: torch.Tensor, storage: Any, flat: torch.Tensor, error: float, norm: float,
        site: int,
    ) -> Shadow:  # fmt: skip
        key = storage._cdata
        made = Shadow(flat, tensor.element_size(), error, 0.0, norm, site, site)
        made.guard = weakref.ref(storage, self._forget(key))
        self._shadows[key] = made
        return made

    def _forget(self, key: int) -> Callable[[object], None]:
        shadows = self._shadows

        def forget(reference: object) -> None:
            current = shadows.get(key)
            if current is not None and current.guard is reference:
                del shadows[key]

        return forget

    def drop(self, tensor: torch.Tensor) -> None:
        self._shadows.pop(tensor.untyped_storage()._cdata, None)

    def clear(self) -> None:
        """Forget everything; what is read next counts as exact."""
        self._shadows.clear()

    @property
    def bytes(self) -> int:
        return sum(item.flat.numel() * item.flat.element_size() for item in self._shadows.values())
