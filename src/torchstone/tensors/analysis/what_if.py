"""Every format, granularity and scale on the same rows."""

from __future__ import annotations

import torch

from torchstone.core.options import unknown
from torchstone.tensors.analysis.by_format import rows_how
from torchstone.tensors.analysis.figures import Figures, measure_matrix
from torchstone.tensors.formats import GRANULARITIES, Format


def what_if(
    rows: torch.Tensor,
    formats: tuple[Format, ...],
    granularities: tuple[str, ...],
    largest: float,
    total: int,
) -> tuple[Figures, ...]:
    """The figures of all combinations that exist."""
    for name in granularities:
        if name not in GRANULARITIES:
            raise unknown("granularities", str(name), GRANULARITIES)
    how = rows_how(rows, total)
    return tuple(
        measure_matrix(rows, format, granularity, scale, how, largest, total)
        for format in formats
        for granularity in format.granularities
        if granularity in granularities
        for scale in (format.scales if granularity != "tensor" or len(format.scales) < 3 else format.scales)
        if not (scale == "none" and granularity != "tensor")
    )
