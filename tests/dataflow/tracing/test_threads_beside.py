"""Threads of the program are kept waiting while functions are looked for."""

from __future__ import annotations

import gc
import sys

import pytest

from torchstone.dataflow.tracing.instrument import functions_with


def test_no_thread_runs_between_reading_and_dropping_all_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tuple that another thread is building could not be finished."""
    usual, during = sys.getswitchinterval(), []
    read = gc.get_objects

    def noted() -> list[object]:
        during.append(sys.getswitchinterval())
        return read()

    monkeypatch.setattr(gc, "get_objects", noted)
    functions_with({0})
    assert during[0] > 10 * usual
    assert sys.getswitchinterval() == usual
