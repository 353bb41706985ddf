"""Programs that are run again with something changed; one file each, found by folder.

A module has `RULES` and `examine(start, first)`: `first` is what the program did as it is. A variation that has nothing to change
runs nothing.
"""

from __future__ import annotations

import functools
from types import ModuleType

from torchstone.core.registry import modules_in


@functools.cache
def all_variations() -> tuple[ModuleType, ...]:
    """Every variation, in order of name."""
    return tuple(sorted(modules_in(__name__), key=lambda item: item.__name__))
