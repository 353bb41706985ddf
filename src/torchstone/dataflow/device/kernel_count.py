"""How many kernels one call launches on a device, and how much they move and compute."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelCount:
    """What one call of a kind launches, from the fewest to the most that was counted."""

    low: int
    usual: int
    high: int
    uploads: int = 0
    """Small tables that go to the device with every call."""
    traffic: float = 1.0
    """Bytes that kernels read and write, for each byte of the call's data."""
    operations: float = 1.0
    """Elements that kernels make, for each byte of the result: one operation each."""
    fused: int = 1
    """Kernels that are left where the call is compiled as a whole: elementwise ones become one, a
    reduction or a scatter ends it."""


UNKNOWN = KernelCount(1, 4, 16, traffic=4.0, operations=4.0, fused=4)
"""Of an entry without figures: wide enough for most entries that have some."""
