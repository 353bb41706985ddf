"""Arrays in memory that two processes share: where each lies, and the arrays themselves.

One layout serves several calls of the same shapes: the arrays of call `i` lie `i` steps further on.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from torchstone.kernels.harness.kits import mindspore_kit
from torchstone.kernels.harness.reference.running import Values, as_tensor
from torchstone.kernels.harness.values import dtype_of, name_of
from torchstone.kernels.messages.trees import Layout, Slot

_ALIGNED_BYTES = 64
"""What allocators give: kernels with wide loads may count on it."""
_MOST_SPREAD = 2
"""An array whose elements lie further apart than this is handed over without gaps."""


def views_of(slot: Slot, base: torch.Tensor, calls: int) -> Values:
    """The arrays of the first calls, in shared memory."""
    whole = base.narrow(0, slot.offset_bytes, slot.step_bytes * calls)
    rows = whole.view(calls, slot.step_bytes)
    dtype = dtype_of(slot.dtype)
    if not slot.reach:
        return [torch.empty(slot.shape, dtype=dtype)] * calls
    flat = rows.narrow(1, 0, slot.reach * dtype.itemsize).view(dtype)
    made = flat.as_strided(
        (calls, *slot.shape), (flat.stride(0), *slot.stride), flat.storage_offset()
    )
    return [_as_kind(item, slot.kind) for item in made.unbind(0)]


def _as_kind(tensor: torch.Tensor, kind: str) -> object:
    if kind == "torch":
        return tensor
    return mindspore_kit.tensor(tensor.numpy()) if kind == "mindspore" else tensor.numpy()


def layout_of(leaves: Sequence[object], calls: int) -> Layout:
    """Room for the arrays among these leaves, as many times as there are calls."""
    slots: list[Slot | None] = []
    offset = 0
    for leaf in leaves:
        tensor = as_tensor(leaf) if hasattr(leaf, "dtype") and hasattr(leaf, "shape") else None
        if tensor is None or isinstance(leaf, np.generic):
            slots.append(None)
            continue
        stride, reach = _strides_of(tensor)
        step = -(-max(reach * tensor.element_size(), 1) // _ALIGNED_BYTES) * _ALIGNED_BYTES
        kind = "torch" if isinstance(leaf, torch.Tensor) else "numpy"
        kind = "mindspore" if mindspore_kit.is_tensor(leaf) else kind
        slots.append(
            Slot(kind, name_of(tensor.dtype), tuple(tensor.shape), stride, reach, offset, step)
        )
        offset += step * calls
    return Layout(tuple(slots), calls)


def _strides_of(tensor: torch.Tensor) -> tuple[tuple[int, ...], int]:
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    if 0 in shape:
        return stride, 0
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if 0 in stride or reach > _MOST_SPREAD * tensor.numel():
        stride, reach = tuple(torch.empty(shape, device="meta").stride()), tensor.numel()
    return stride, reach


@dataclass(slots=True)
class Mapped:
    """The memory behind two handles, mapped when it is first needed and kept: a new mapping costs as much
    as a short kernel."""

    handles: tuple[int, ...]
    _inputs: torch.Tensor | None = None
    _outputs: torch.Tensor | None = None

    def inputs(self) -> torch.Tensor:
        """A view of its own: what is written here is seen by nobody else."""
        if self._inputs is None:
            self._inputs = map_bytes(self.handles[0], writable=False)
        return self._inputs

    def outputs(self) -> torch.Tensor:
        if self._outputs is None:
            self._outputs = map_bytes(self.handles[1], writable=True)
        return self._outputs

    def offset_of(self, address: int) -> int:
        """Where an address lies in the inputs; -1 where it does not, or nothing is mapped."""
        if self._inputs is None:
            return -1
        start = self._inputs.data_ptr()
        return address - start if start <= address < start + self._inputs.numel() else -1


def map_bytes(handle: int, *, writable: bool) -> torch.Tensor:
    """Shared memory as bytes; without `writable` what is written there is nobody else's business."""
    flags = mmap.MAP_SHARED if writable else mmap.MAP_PRIVATE
    size = os.fstat(handle).st_size
    mapped = mmap.mmap(handle, size, flags, mmap.PROT_READ | mmap.PROT_WRITE)
    return torch.frombuffer(mapped, dtype=torch.uint8)
