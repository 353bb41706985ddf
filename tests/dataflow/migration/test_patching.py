"""Functions are replaced wherever a program holds them, and the process is left as it was found."""

from __future__ import annotations

import pickle
import random
import signal
import threading

import cv2
import numpy as np
import pytest
import torch

from tests.dataflow.migration import a_program
from torchstone.core.errors import InputError
from torchstone.dataflow import PipelineMigrator
from torchstone.dataflow.migration.patching import injector as injector_module

PLAN = {"context_device_map": {"cv2.resize": "cuda:0"}}


def migrator(plan=PLAN, **options):
    return PipelineMigrator.from_plan(plan, **options)


@pytest.mark.parametrize("way", list(a_program.WAYS))
def test_every_way_to_hold_a_function_is_found(way: str) -> None:
    image = a_program.an_image()
    call = a_program.WAYS[way]
    expected = call(image)
    with migrator() as applied:
        got = call(image)
        moved = applied.get_stats()["calls_migrated"]
    assert moved == 1
    assert np.array_equal(expected, got)
    call(image)
    assert applied.get_stats()["calls_migrated"] == 1


def test_restore_leaves_the_process_as_it_was_found() -> None:
    before = a_program.everything_held()
    with migrator():
        assert cv2.resize is not before[0]
    after = a_program.everything_held()
    assert _same_objects(before, after)


def _same_objects(one: object, other: object) -> bool:
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same_objects, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same_objects(one[k], other[k]) for k in one)
    return one is other or (one == other and not callable(one))


def test_local_objects_are_reached_through_roots() -> None:
    image = a_program.an_image()
    local = a_program.Steps()
    with migrator(roots=(local,)) as applied:
        local.by_instance(image)
        assert applied.get_stats()["calls_migrated"] == 1
    assert local.function is cv2.resize


def test_apply_twice_and_restore_without_apply() -> None:
    once = migrator()
    assert once.restore() == 0
    assert not once.is_applied()
    assert once.apply() == {"patched": 1, "failed": 0, "skipped": 0}
    assert once.apply() == {"patched": 0, "failed": 0, "skipped": 0}
    with once:
        assert once.is_applied()
    assert not once.is_applied()
    assert once.restore() == 0


def test_a_second_migrator_does_not_replace_what_is_replaced() -> None:
    before = cv2.resize
    with migrator():
        other = migrator()
        assert other.apply() == {"patched": 0, "failed": 1, "skipped": 0}
        assert "restore that one first" in other.unpatched()[0].reason.en
        assert other.restore() == 0
        assert cv2.resize is not before
    assert cv2.resize is before


def test_functions_that_do_not_exist_fail_and_say_so() -> None:
    plan = {
        "context_device_map": {
            "f/cv2.resizze": "cuda:0",
            "f/operator.truediv": "cuda:0",
            "f/os.system": "cuda:0",
        }
    }
    applied = migrator(plan)
    assert applied.apply() == {"patched": 0, "failed": 2, "skipped": 1}
    assert {item.function for item in applied.unpatched() if item.failed} == {
        "cv2.resizze",
        "os.system",
    }
    applied.restore()


@pytest.mark.parametrize(
    "plan",
    [
        {"context_device_map": {"cv2.resize": "warp drive"}},
        {"context_device_map": {"cv2.resize": 3}},
        {"schema": "torchstone/flow-plan/99", "context_device_map": {}},
        {"nodes": []},
        [],
    ],
)
def test_broken_plans_are_refused_before_anything_changes(plan: object) -> None:
    before = cv2.resize
    with pytest.raises(InputError):
        PipelineMigrator.from_plan(plan)
    assert cv2.resize is before


def test_an_absent_device_becomes_cpu_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with migrator({"context_device_map": {"cv2.resize": "cuda:7"}}) as applied:
        assert applied.get_stats()["devices"] == {"cuda:7": "cpu"}
    assert "this machine has no cuda:7" in caplog.text
    assert "本机没有 cuda:7" in applied.notes()[0].zh


def test_a_call_that_stays_is_the_original() -> None:
    image = a_program.an_image()
    plan = {
        "context_device_map": {"by_name/cv2.resize": "cuda:0", "by_attribute/cv2.resize": "cpu"}
    }
    with migrator(plan) as applied:
        a_program.by_name(image)
        a_program.by_attribute(image)
        a_program.by_alias(image)
        counts = applied.get_stats()["functions"]["cv2.resize"]
    assert (counts["migrated"], counts["stayed"]) == (1, 2)


def test_an_interrupt_while_patching_takes_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = a_program.everything_held()
    plan = {"context_device_map": {"cv2.resize": "cuda:0", "cv2.cvtColor": "cuda:0"}}

    def interrupted(*args: object):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(injector_module, "find_changes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        migrator(plan).apply()
    assert _same_objects(before, a_program.everything_held())


def test_an_interrupt_of_the_program_restores_on_the_way_out() -> None:
    before = a_program.everything_held()
    # started in the background of a shell, a process ignores interrupts
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _interrupted_program()
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert _same_objects(before, a_program.everything_held())


def _interrupted_program() -> None:
    with migrator():
        a_program.by_name(a_program.an_image())
        signal.raise_signal(signal.SIGINT)


def test_the_original_error_reaches_the_program_unchanged() -> None:
    with pytest.raises(cv2.error) as plain:
        cv2.resize(np.zeros((0, 3, 3), np.uint8), (2, 2))
    with migrator(), pytest.raises(cv2.error) as moved:
        cv2.resize(np.zeros((0, 3, 3), np.uint8), (2, 2))
    assert str(plain.value) == str(moved.value)


def test_what_stands_in_looks_compares_and_pickles_as_the_original() -> None:
    original, add = cv2.resize, np.add
    plan = {"context_device_map": {"cv2.resize": "cuda:0", "numpy.add": "cuda:0"}}
    with migrator(plan):
        assert cv2.resize == original
        assert hash(cv2.resize) == hash(original)
        assert cv2.resize.__name__ == "resize"
        assert isinstance(np.add, np.ufunc)
        assert np.add.reduce([1, 2, 3]) == 6
        assert np.add.outer([1], [2]).tolist() == [[3]]
        pickled = pickle.dumps(np.add)
    assert pickle.loads(pickled) is add


def test_random_state_is_preserved() -> None:
    image = a_program.an_image()

    def states() -> tuple[object, ...]:
        return (
            random.getstate(),
            pickle.dumps(np.random.get_state()),
            torch.get_rng_state().tolist(),
        )

    before = states()
    with migrator(verify_rate=1.0):
        for way in a_program.WAYS.values():
            way(image)
    assert states() == before


def test_threads_have_contexts_of_their_own() -> None:
    image = a_program.an_image()
    expected = a_program.by_name(image)
    results: list[np.ndarray] = []

    def work() -> None:
        results.extend(a_program.by_name(image) for _ in range(5))

    with migrator() as applied:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert applied.get_stats()["calls_migrated"] == 20
    assert all(np.array_equal(expected, item) for item in results)
