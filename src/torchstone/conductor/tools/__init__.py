"""The tools that a review can run, one file each; put a file here and the plan offers it.

A module has `NAME`, `SEED_NAME` (what the workflow calls it), `LAYER`, `GOALS`, `DEPTH` (from which depth on),
`offer(request)` (jobs, or why there are none), `version()` ("" where it is not installed) and
`run(job)`, which is called by a worker in the project's folder and returns a Report.
"""

from __future__ import annotations

import functools
from types import ModuleType

from torchstone.core.registry import modules_in


@functools.cache
def all_tools() -> dict[str, ModuleType]:
    """Every tool by name, in the order of layers."""
    from torchstone.conductor.jobs.job import LAYERS

    found = sorted(modules_in(__name__), key=lambda item: (LAYERS.index(item.LAYER), item.NAME))
    return {module.NAME: module for module in found}


def tool_named(name: str) -> str:
    """Our name of a tool that may have been given by the workflow's name."""
    known = {module.SEED_NAME.lower(): ours for ours, module in all_tools().items()}
    return known.get(name.lower(), name.lower())
