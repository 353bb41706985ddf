"""Every format, granularity and scale on the same rows."""

from __future__ import annotations

import torch

from torchstone.core.options import unknown
from torchstone.tensors.analysis.errors.by_format import rows_how
from torchstone.tensors.analysis.errors.figures import Figures, measure_matrix
from torchstone.tensors.analysis.values.distribution import Distribution
from torchstone.tensors.formats import GRANULARITIES, Format


def what_if(
    rows: torch.Tensor,
    formats: tuple[Format, ...],
    granularities: tuple[str, ...],
    distribution: Distribution,
    known: tuple[Figures, ...],
) -> tuple[Figures, ...]:
    """The figures of all combinations that exist; those that are `known` are not made again."""
    for name in granularities:
        if name not in GRANULARITIES:
            raise unknown("granularities", str(name), GRANULARITIES)
    how = rows_how(rows, distribution.total)
    done = {(item.format, item.granularity, item.scale): item for item in known}
    found = []
    for item in formats:
        for granularity, scale in _combinations(item, granularities):
            made = done.get((item.name, granularity, scale))
            found.append(made or measure_matrix(
                rows, item, granularity, scale, how, distribution.largest, distribution.total
            ))  # fmt: skip
    return tuple(found)


def _combinations(format: Format, granularities: tuple[str, ...]) -> list[tuple[str, str]]:
    """A raw cast has no scale, hence no granularity but the whole tensor."""
    return [
        (granularity, scale)
        for granularity in format.granularities
        if granularity in granularities
        for scale in format.scales
        if scale != "none" or granularity == "tensor"
    ]
