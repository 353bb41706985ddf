"""Processes that a program starts are forked, so that they have what was supplied to it."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context


def fork_workers() -> None:
    """A spawned worker starts from the program's file, without the packages that stand in for missing ones."""
    contexts = vars(multiprocessing.context)["_concrete_contexts"]
    contexts.update(dict.fromkeys(contexts, contexts["fork"]))
    multiprocessing.set_start_method("fork", force=True)
