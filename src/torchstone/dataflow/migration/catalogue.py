"""The operators that can move, found by their folder."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from torchstone.core.registry import modules_in
from torchstone.dataflow.migration.specification import STRATEGIES, OpSpec

LIBRARIES = ("cv2", "numpy", "pil", "torch", "audio")
"""The folders of `moves/`."""


@functools.cache
def catalogue() -> Mapping[str, OpSpec]:
    """Every declared operator by the full name of its original."""
    found: dict[str, OpSpec] = {}
    for library in LIBRARIES:
        for module in modules_in(f"torchstone.dataflow.migration.moves.{library}"):
            for spec in module.MOVES:
                assert spec.name not in found, f"{spec.name} is declared twice"
                found[spec.name] = spec
    return MappingProxyType(found)


def list_supported_functions() -> dict[str, list[str]]:
    """Names by strategy."""
    return {
        strategy: sorted(spec.name for spec in catalogue().values() if spec.strategy == strategy)
        for strategy in STRATEGIES
    }
