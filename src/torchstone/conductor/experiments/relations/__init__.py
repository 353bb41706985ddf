"""Relations that must hold in any training program; one file each, found by folder.

A module has `RULES` and `examine(subject)`, which returns what was broken and whether anything could be
decided at all: a relation that had nothing to look at says nothing.
"""

from __future__ import annotations

import functools
from types import ModuleType

from torchstone.core.registry import modules_in


@functools.cache
def all_relations() -> tuple[ModuleType, ...]:
    """Every relation, in order of name."""
    return tuple(sorted(modules_in(__name__), key=lambda item: item.__name__))
