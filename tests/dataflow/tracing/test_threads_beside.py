"""Threads of the program go on undisturbed while functions are looked for."""

from __future__ import annotations

import threading

from torchstone.dataflow.tracing.instrument import functions_with


def test_a_tuple_that_another_thread_builds_can_be_finished() -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def build() -> None:
        try:
            while not stop.is_set():
                tuple(item for item in range(300))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        functions_with({0})
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
