"""The four workflows of the field, one file each: MLA, MoE, distributed sync, mixed precision.

A module has `NAME`, `TITLE`, `STEPS` (six boxes), `CHECKPOINTS` (four) and `applies(facts)`.
"""

from __future__ import annotations

import functools
from types import ModuleType

from torchstone.core.registry import modules_in


@functools.cache
def all_scenarios() -> dict[str, ModuleType]:
    """Every scenario by name."""
    return {module.NAME: module for module in modules_in(__name__)}
