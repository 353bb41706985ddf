"""The properties, one file each; put a file here and it is checked.

A module has `RULE` and `check(run)`, which yields a `Shown` for each line that breaks the property.
"""

from __future__ import annotations

import functools
from types import ModuleType

from torchstone.core.registry import modules_in


@functools.cache
def all_checks() -> dict[str, ModuleType]:
    """Every check by the id of its rule."""
    return {module.RULE.id: module for module in modules_in(__name__)}
