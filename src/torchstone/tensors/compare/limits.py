"""From which size on an error is suspected, harms, and counts as cured."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from torchstone.runtime.number_formats import format_of

_BAD_UNITS = {"forward": 8, "backward": 64}
"""Error that leaves a line, in units of rounding, before it is suspected. Low, because a suspect is only
blamed after a second run; gradients of healthy networks cancel more (convolutions before a batch norm
multiply errors by 25)."""
_BAD_SHARE = {"forward": 0.01, "backward": 0.25}
"""And as a share: below this an error harms no training in 16 bits, however many units of rounding it has."""
_BAD_SHARE_32 = {"forward": 2e-4, "backward": 2e-3}
"""The same where the step runs in fp32: from here on a value has passed through a shorter format (TF32 rounds
to 5e-4, bfloat16 to 2e-3)."""
_HARM_UNITS = 4
"""What reaches outputs, gradients or statistics must be at least this bad: a difference that is damped
later harms nobody."""
GROWTH = 8
"""How many times the error that entered. A layer norm of mean 8 and deviation 1 multiplies by 8."""
CURED = 0.5
"""A line is to blame if with its results made exact at most this share of the harm is left."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits for one format."""

    unit: float
    """Its unit of rounding."""
    forward: float
    backward: float
    harm: float

    @classmethod
    def of(cls, low: torch.dtype) -> Limits:
        unit = format_of(low).rounding_unit
        share = _BAD_SHARE if low.itemsize <= 2 else _BAD_SHARE_32
        bad = {phase: max(_BAD_UNITS[phase] * unit, share[phase]) for phase in share}
        return cls(unit, bad["forward"], bad["backward"], _HARM_UNITS * unit)

    def suspicious(self, phase: str) -> float:
        """The error above which what leaves a line of this phase is suspected."""
        return self.forward if phase == "forward" else self.backward
