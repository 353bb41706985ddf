"""The user's own program, run with fake weights: shapes, memory, and every rank of the job.

The names below are loaded when they are first used: the options of the command need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchstone.dryrun.ranks.expect import expect_same_collectives
    from torchstone.dryrun.run import dry_run

__all__ = ["dry_run", "expect_same_collectives"]

_HOMES = {
    "dry_run": "torchstone.dryrun.run",
    "expect_same_collectives": "torchstone.dryrun.ranks.expect",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
