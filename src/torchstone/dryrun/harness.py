"""Errors of our own: what surrounds the program failed, and nothing is said about the program."""

from __future__ import annotations

from torchstone.observe.compat.autograd_engine import engine_threads


class HarnessError(Exception):
    """Something that a dry run puts around the program does not work here."""


def check_can_copy() -> None:
    """Raise where copies of this process could not compute gradients."""
    if threads := engine_threads():
        raise HarnessError(
            f"torch has started {threads} threads for devices: copies of this process have no autograd"
        )
