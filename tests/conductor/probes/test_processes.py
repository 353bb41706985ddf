"""Processes are limited by their own CPU time, whatever else the machine does."""

from __future__ import annotations

import os
import signal
import time

import pytest

from torchstone.conductor.probes import processes
from torchstone.conductor.probes.processes import answers_of


def test_answers_come_in_the_order_of_the_works() -> None:
    assert answers_of([lambda: "first", lambda: "second"]) == [("first", False), ("second", False)]


def test_what_computes_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "CPU_SECONDS", 1)

    def compute() -> str:
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        while True:
            pass

    assert answers_of([compute]) == [(None, True)]


def test_time_that_others_use_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "CPU_SECONDS", 1)

    def wait() -> str:
        time.sleep(1.5)
        return "done"

    assert answers_of([wait]) == [("done", False)]


def test_a_process_that_dies_is_no_answer() -> None:
    def die() -> str:
        os._exit(3)

    assert answers_of([die]) == [(None, False)]
