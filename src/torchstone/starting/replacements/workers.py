"""Processes that a program starts are forked, so that they have what was supplied to it."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context


def fork_workers() -> None:
    """A spawned worker begins with the file of the program and nothing of what stands in for missing packages."""
    contexts = vars(multiprocessing.context)["_concrete_contexts"]
    contexts.update(dict.fromkeys(contexts, contexts["fork"]))
    multiprocessing.set_start_method("fork", force=True)
