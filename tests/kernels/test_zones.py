"""Margins stand around the candidate's buffers, not around the registers of an interpreter."""

from __future__ import annotations

import numpy as np

from torchstone.kernels.harness.calling.candidate_server import _interpreting
from torchstone.kernels.harness.calling.red_zones import Zones


def test_arrays_of_the_interpreter_have_no_margins() -> None:
    zones = Zones("nan")
    zones.active = True
    with zones.numpy_patched():
        with _interpreting(zones):
            np.full(3, 1.0)
            assert not zones.zones
        assert zones.active
        np.full(3, 1.0)
        assert len(zones.zones) == 1
