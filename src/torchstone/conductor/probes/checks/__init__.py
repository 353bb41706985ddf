"""The properties, one file each in the folder of its family; put a file there and it is checked.

A module has `RULE` and `check(run)`, which yields a `Shown` for each line that breaks the property,
and calls `run.asks(RULE)` for everything it looks at that could break it.
"""

from __future__ import annotations

import functools
from types import ModuleType

from torchstone.core.registry import modules_in

FAMILIES = ("training", "precision", "attention", "experts", "state")


@functools.cache
def all_checks() -> dict[str, ModuleType]:
    """Every check by the id of its rule."""
    found = [module for family in FAMILIES for module in modules_in(f"{__name__}.{family}")]
    return {module.RULE.id: module for module in sorted(found, key=lambda module: module.RULE.id)}
