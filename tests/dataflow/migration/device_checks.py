"""Migration to the pretend accelerator, in a process of its own."""

from __future__ import annotations

import logging

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader

from tests.dataflow.migration.test_loaders import Images, batches, same
from torchstone.dataflow import PipelineMigrator
from torchstone.runtime.pretend_accelerator import pretend_accelerator, register

IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
NAMES = ("cv2.resize", "cv2.cvtColor", "cv2.flip", "cv2.GaussianBlur")
PLAN = {"context_device_map": dict.fromkeys(NAMES, "pretend:0")}


def pipeline(image: np.ndarray) -> np.ndarray:
    image = cv2.resize(image, (32, 24))
    image = cv2.GaussianBlur(image, (5, 5), 1.1)
    return cv2.cvtColor(image, cv2.COLOR_BGR2HSV)


def results_are_equal_and_bytes_are_counted() -> None:
    expected = pipeline(IMAGE)
    with (
        pretend_accelerator() as device,
        PipelineMigrator.from_plan(PLAN, verify_rate=0) as migrator,
    ):
        pipeline(IMAGE)  # probes every entry
        device.to_device_bytes = device.to_host_bytes = 0
        before = migrator.get_stats()
        got = pipeline(IMAGE)
        after = migrator.get_stats()
    assert np.array_equal(expected, got)
    assert after["calls_migrated"] == 6
    assert after["calls_fallback"] == 0
    images = IMAGE.nbytes + 2 * 24 * 32 * 3
    assert after["bytes_to_device"] - before["bytes_to_device"] == images
    assert after["bytes_to_host"] - before["bytes_to_host"] == 3 * 24 * 32 * 3
    assert device.to_host_bytes == 3 * 24 * 32 * 3
    assert device.to_device_bytes >= images  # and the tables of the kernels


def a_plan_that_keeps_results_on_the_device_moves_fewer_bytes() -> None:
    expected = pipeline(IMAGE)
    operators = [
        {"context": "cv2.resize", "function": "cv2.resize", "device": "pretend:0", "keep_on_device": True},
        {"context": "cv2.GaussianBlur", "function": "cv2.GaussianBlur", "device": "pretend:0", "keep_on_device": True},
    ]  # fmt: skip
    with (
        pretend_accelerator(),
        PipelineMigrator.from_plan({**PLAN, "operators": operators}) as migrator,
    ):
        got = pipeline(IMAGE)
        stats = migrator.get_stats()
    assert type(got) is np.ndarray
    assert np.array_equal(expected, got)
    assert stats["bytes_to_device"] == IMAGE.nbytes
    assert stats["bytes_to_host"] == 24 * 32 * 3
    assert stats["kept_on_device"] == ["cv2.resize", "cv2.GaussianBlur"]


def out_of_memory_falls_back(records: list[str]) -> None:
    expected = pipeline(IMAGE)
    with pretend_accelerator(), PipelineMigrator.from_plan(PLAN) as migrator:
        pipeline(IMAGE)
        with pretend_accelerator(memory_bytes=1000):
            got = pipeline(IMAGE)
        stats = migrator.get_stats()
    assert np.array_equal(expected, got)
    assert stats["calls_fallback"] == 3
    reason = stats["fallbacks"][0]
    assert "out of memory" in reason["reason"]
    assert reason["line"].rpartition(":")[0].endswith("device_checks.py")
    assert any(
        line.startswith("Migration failed: ") and line.endswith("Falling back to CPU.")
        for line in records
    )


def a_missing_operator_falls_back(records: list[str]) -> None:
    expected = pipeline(IMAGE)
    missing = frozenset({"aten.index_select"})
    with (
        pretend_accelerator(missing_operators=missing),
        PipelineMigrator.from_plan(PLAN) as migrator,
    ):
        got = pipeline(IMAGE)
        stats = migrator.get_stats()
    assert np.array_equal(expected, got)
    assert stats["calls_fallback"] >= 2


def batches_of_workers_are_computed_on_the_device() -> None:
    expected, state = batches(Images(), 2)
    with pretend_accelerator() as device, PipelineMigrator.from_plan(PLAN) as migrator:
        got, after = batches(Images(), 2)
        stats = migrator.get_stats()
    assert same(expected, got)
    assert state == after
    assert stats["calls_deferred"] > 40
    assert device.operators > 0
    bases = sum((60 + index % 3) * 50 * 3 for index in range(22))
    assert stats["bytes_to_device"] == bases  # uint8, each image once


def a_batch_that_does_not_fit_falls_back(records: list[str]) -> None:
    expected, _ = batches(Images(), 2)
    with pretend_accelerator(), PipelineMigrator.from_plan(PLAN) as migrator:
        batches(Images(), 0)
        with pretend_accelerator(memory_bytes=1000):
            got, _ = batches(Images(), 2)
        stats = migrator.get_stats()
    assert same(expected, got)
    assert stats["calls_fallback"] > 0


def tensors_move_and_come_back() -> None:
    x = torch.randn(2, 3, 8, 8)
    expected = torch.nn.functional.interpolate(x, scale_factor=2.0)
    plan = {"context_device_map": {"torch.nn.functional.interpolate": "pretend:0"}}
    allowed = PipelineMigrator.from_plan(plan, allow_rounding=True)
    with pretend_accelerator() as device, allowed as migrator:
        got = torch.nn.functional.interpolate(x, scale_factor=2.0)
        assert migrator.get_stats()["calls_migrated"] == 1
    assert got.device.type == "cpu"
    assert torch.equal(expected, got)
    assert device.to_device_bytes >= x.numel() * 4


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main() -> None:
    register()
    heard = Lines()
    logging.getLogger("migration").addHandler(heard)
    assert DataLoader
    for check in (
        results_are_equal_and_bytes_are_counted,
        a_plan_that_keeps_results_on_the_device_moves_fewer_bytes,
        tensors_move_and_come_back,
        batches_of_workers_are_computed_on_the_device,
    ):
        check()
        print("passed", check.__name__)  # noqa: T201
    for faulty in (
        out_of_memory_falls_back,
        a_batch_that_does_not_fit_falls_back,
        a_missing_operator_falls_back,
    ):
        faulty(heard.lines)
        print("passed", faulty.__name__)  # noqa: T201


if __name__ == "__main__":
    main()
