"""The conductor: six phases over a project, whoever leads, on all the tools of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchstone.conductor.review import review

__all__ = ["review"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"torchstone.conductor.{name}"), name)
