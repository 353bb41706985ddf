"""A plan finds its calls, every call is counted once, and nothing of it crashes the program."""

from __future__ import annotations

import logging
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor

import cv2
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from torchstone.core.text import Text
from torchstone.dataflow import EnhancedTracer, OptimizerManager, PipelineMigrator
from torchstone.dataflow.device.profile import DeviceProfile
from torchstone.dataflow.migration import wrapper
from torchstone.dataflow.migration.ledger import Fallback
from torchstone.dataflow.plan import MigrationPlan
from torchstone.dataflow.run_report import Ran, Runs, report_on_runs

FATES = ("migrated", "deferred", "fallback", "stayed", "unused")
IMAGES = [np.random.default_rng(n).integers(0, 256, (24, 18, 3), np.uint8) for n in range(5)]
FREE = DeviceProfile(
    "cuda:0", 1e15, latency_seconds=0.0, launch_seconds=0.0, speedup=1e6, speedups={}
)
"""A device on which everything that can move pays."""


def image_pipeline(images):
    return [cv2.cvtColor(cv2.resize(image, (16, 12)), cv2.COLOR_BGR2RGB) for image in images]


def adds_up(stats) -> bool:
    parts = [stats["functions"][name] for name in stats["functions"]]
    return all(part["calls"] == sum(part[fate] for fate in FATES) for part in parts) and stats[
        "calls_total"
    ] == sum(stats[f"calls_{fate}"] for fate in FATES)


def trace() -> EnhancedTracer:
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        results = image_pipeline(IMAGES)
        flipped = [cv2.flip(image, 1) for image in results]
        assert flipped
    return tracer


def plan_of(tracer: EnhancedTracer):
    manager = OptimizerManager(k=2)
    made = manager.optimize(tracer.dag_builder.dag)
    return manager.get_best_plan(made["coarsened_dag"], 1, profile=FREE)


def run_elsewhere(plan, **options):
    def inner():
        return image_pipeline(IMAGES), [cv2.flip(image, 0) for image in IMAGES]

    with PipelineMigrator.from_plan(plan, **options) as migrator:
        inner()
    return migrator


def test_a_plan_that_was_traced_in_one_function_moves_calls_in_another() -> None:
    plan = plan_of(trace())
    keys = set(plan["context_device_map"])
    assert keys == {"image_pipeline/cv2.resize", "image_pipeline/cv2.cvtColor", "cv2.flip"}
    stats = run_elsewhere(plan).get_stats()
    assert stats["calls_migrated"] == stats["calls_total"] == 15
    assert adds_up(stats)
    ((context, calls),) = stats["contexts"]["cv2.flip"].items()
    assert context.endswith("/run_elsewhere/run_elsewhere.<locals>.inner/cv2.flip")
    assert calls == 5


@pytest.mark.parametrize(
    ("entries", "stayed", "said"),
    [
        ({"f/cv2.flip@3": "cuda:0", "f/cv2.flip@5": "cuda:1"}, 5, "no call: it names f/cv2.flip@3"),
        ({"f/cv2.erode": "cuda:0"}, 0, "no call: it names f/cv2.erode; calls that fit no entry: none"),
        ({"f/cv2.erode": "cuda:0", "cv2.flip": "cuda:0"}, 0, "only some calls: it names f/cv2.erode;"),
    ],
)  # fmt: skip
def test_a_plan_that_matches_nothing_or_only_part_says_so(
    entries: dict[str, str], stayed: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "migration"):
        stats = run_elsewhere({"context_device_map": entries}).get_stats()
    assert stats["calls_stayed"] == stayed
    assert f"The plan matched {said}" in caplog.text
    assert "held by the program in" in caplog.text
    assert ("no entry of the plan" in caplog.text) == bool(stayed)


def test_planned_calls_that_all_fell_back_are_a_finding() -> None:
    reason, edit = Text("needed in the worker", "在工作进程中就被用到"), Text("edit it", "请修改")
    stats = {"calls_fallback": 5, "contexts": {"f/cv2.flip": {"f/cv2.flip": 5}}}
    ran = Ran({}, 1.0)
    runs = Runs("job.py", ran, ran, stats, (), frozenset(), fallbacks=(Fallback("cv2.flip", reason, "data.py:7", edit, 5, 0.0),))  # fmt: skip
    report = report_on_runs(MigrationPlan({"f/cv2.flip": "cuda:0"}), runs)
    (finding,) = report.findings
    assert (finding.rule, finding.location.path, finding.location.line) == ("FL104", "data.py", 7)
    assert report.answer is not None
    assert report.answer.state == "warning"
    assert (
        "5 planned calls ran on the CPU; cv2.flip at data.py:7: needed" in report.answer.lines[0].en
    )


class Followed(Dataset):
    """A function that moves, then one that does not."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> np.ndarray:
        return cv2.pyrDown(cv2.resize(IMAGES[index % 5], (16, 12)))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_moved_function_that_is_followed_by_one_that_stays(workers: int) -> None:
    expected = list(DataLoader(Followed(), 4, num_workers=workers))
    plan = {"context_device_map": {"Followed.__getitem__/cv2.resize": "cuda:0"}}
    with PipelineMigrator.from_plan(plan) as migrator:
        got = list(DataLoader(Followed(), 4, num_workers=workers))
    stats = migrator.get_stats()
    assert all(map(torch.equal, expected, got))
    assert adds_up(stats)
    assert stats["calls_total"] == 8
    assert stats["calls_fallback" if workers else "calls_migrated"] == 8
    if workers:
        (fallback,) = migrator.fallbacks()
        assert fallback.calls == 8
        assert "needed in the worker, at " in fallback.reason.en
        assert fallback.line.startswith(__file__)


class WithObject(Dataset):
    """A method of an object in C takes a real array only."""

    def __init__(self) -> None:
        self.clahe = cv2.createCLAHE(2.0)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> np.ndarray:
        image = cv2.resize(IMAGES[index][..., 0], (16, 12))
        if random.random() < 0.5:
            image = cv2.flip(image, 1)
        return self.clahe.apply(image)


class StreamWithObject(IterableDataset):
    """The same in a stream, from its third item on: a generator that raised gives nothing more."""

    def __iter__(self):
        first = random.random()
        for index, image in enumerate(IMAGES):
            small = cv2.resize(image[..., 0], (16, 12))
            small = cv2.flip(small, 1) if random.random() < first else small
            yield cv2.createCLAHE(2.0).apply(small) if index > 1 else small


class OwnIterator(IterableDataset):
    """A stream that cannot be begun again."""

    def __init__(self) -> None:
        self.source = iter(StreamWithObject())

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.source)


class Repeatable(StreamWithObject):
    """Its items are stacked by code that takes only real arrays."""

    def __iter__(self):
        return (cv2.resize(image, (16, 12)) for image in IMAGES)


def equalized(items):
    return torch.stack(
        [torch.from_numpy(cv2.createCLAHE(2.0).apply(item[..., 0])) for item in items]
    )


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("dataset", "collate"),
    [(WithObject, None), (StreamWithObject, None), (OwnIterator, None), (Repeatable, equalized)],
)
def test_a_handle_that_meets_code_in_c_costs_no_crash(dataset, collate, workers: int) -> None:
    def batches():
        random.seed(4)
        torch.manual_seed(4)  # workers are seeded from it
        loader = DataLoader(dataset(), 2, num_workers=workers, collate_fn=collate)
        return list(loader), random.random()

    expected = batches()
    plan = {"context_device_map": {"cv2.resize": "cuda:0", "cv2.flip": "cuda:0"}}
    with PipelineMigrator.from_plan(plan) as migrator:
        got = batches()
    assert all(map(torch.equal, expected[0], got[0]))
    assert expected[1] == got[1]
    stats = migrator.get_stats()
    assert adds_up(stats)
    assert stats["calls_migrated"] + stats["calls_fallback"] >= 4
    if dataset is not OwnIterator:  # which is not recorded
        assert (
            "met code that takes only real arrays (error: OpenCV" in str(stats["fallbacks"])
            or collate
        )


def test_a_stream_that_gives_other_items_the_second_time_falls_back() -> None:
    class Changing(IterableDataset):
        turn = 0

        def __iter__(self):
            self.turn += 1
            for _ in range(2):
                yield cv2.resize(IMAGES[self.turn], (16, 12))
            yield cv2.createCLAHE(2.0).apply(cv2.resize(IMAGES[self.turn][..., 0], (16, 12)))

    def small(turn: int) -> torch.Tensor:
        return torch.from_numpy(cv2.resize(IMAGES[turn], (16, 12)))[None]

    first, second = small(1), small(2)[..., 0].numpy()[0]
    with PipelineMigrator.from_plan({"context_device_map": {"cv2.resize": "cuda:0"}}) as migrator:
        batches = list(DataLoader(Changing(), 1))
    assert len(batches) == 3
    assert all(torch.equal(batch, first) for batch in batches[:2])
    assert np.array_equal(batches[2][0].numpy(), cv2.createCLAHE(2.0).apply(second))
    (fallback,) = migrator.fallbacks()
    assert "the rest comes from another pass" in fallback.reason.en
    stats = migrator.get_stats()
    assert (stats["calls_fallback"], stats["calls_unused"], stats["calls_total"]) == (1, 0, 6)


def test_calls_of_other_processes_are_counted() -> None:
    plan = {"context_device_map": {"cv2.resize": "cuda:0", "cv2.cvtColor": "cuda:0"}}
    context = multiprocessing.get_context("fork")
    with PipelineMigrator.from_plan(plan) as migrator:
        with ProcessPoolExecutor(2, context) as pool:
            got = list(pool.map(image_pipeline, [IMAGES] * 3))
        stats = migrator.get_stats()
    assert len(got) == 3
    assert stats["calls_total"] == stats["calls_migrated"] == 30
    assert adds_up(stats)


def test_an_exception_in_a_verification_is_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("no comparison today")

    monkeypatch.setattr(wrapper, "difference", broken)
    with PipelineMigrator.from_plan({"context_device_map": {"cv2.flip": "cuda:0"}}) as migrator:
        got = cv2.flip(IMAGES[0], 1)
    assert np.array_equal(got, IMAGES[0][:, ::-1])
    (fallback,) = migrator.fallbacks()
    assert fallback.reason.en == "RuntimeError: no comparison today"
    assert adds_up(migrator.get_stats())
