"""Edits for what runs have shown; one file for each kind of change, found by folder.

A module has `RULES` and `edits(file, finding)`, which yields changes that would remove the fault if the code means
what it usually does. Nothing is offered because it was found here: every change is tried by the runs that showed
the fault, and only what they prove is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

from torchstone.conductor.probes.templates import SourceFile, parsed
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.registry import modules_in

Repair = Callable[[SourceFile, Finding], Iterator[Fix]]
ONE_BY_ONE = frozenset(("TS401", "DR601", "DR603", "DR604", "DR606"))
"""Rules whose places are faults of their own: each has another partner, and is fixed by itself."""


@functools.cache
def repairs_by_rule() -> dict[str, tuple[Repair, ...]]:
    """All repairs, in order of module name."""
    found: dict[str, list[Repair]] = {}
    for module in sorted(modules_in(__name__), key=lambda item: item.__name__):
        for rule in getattr(module, "RULES", ()):
            found.setdefault(rule, []).append(module.edits)
    return {rule: tuple(items) for rule, items in found.items()}


def edits_for(finding: Finding, root: Path) -> tuple[Fix, ...]:
    """Every change that may remove a finding, the likeliest first."""
    repairs = repairs_by_rule().get(finding.rule, ())
    if not repairs or not finding.path:
        return ()
    file = parsed(root, Place(finding.path, finding.line))
    if file is None:
        return ()
    made = (fix for repair in repairs for fix in repair(file, finding))
    return tuple({fix.edits: fix for fix in made}.values())
