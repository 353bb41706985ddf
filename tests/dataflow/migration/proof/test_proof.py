"""Entries are proven before use, verified in production, and taken out when they differ."""

from __future__ import annotations

import dataclasses
import json

import cv2
import numpy as np
import pytest
import torch

from torchstone.dataflow import PipelineMigrator
from torchstone.dataflow.migration import catalogue
from torchstone.dataflow.migration import migrator as migrator_module
from torchstone.dataflow.migration.proof import certificates as certificates_module
from torchstone.dataflow.migration.proof.certificates import Certificates
from torchstone.dataflow.migration.proof.comparison import difference
from torchstone.dataflow.migration.specification import Case

PLAN = {"context_device_map": {"cv2.flip": "cuda:0", "cv2.resize": "cuda:0"}}
IMAGE = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)


def with_backend(monkeypatch: pytest.MonkeyPatch, name: str, backend) -> None:
    changed = {**catalogue(), name: dataclasses.replace(catalogue()[name], backend=backend)}
    monkeypatch.setattr(migrator_module, "catalogue", lambda: changed)


def test_a_certificate_is_made_once_and_read_by_the_next_process(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PipelineMigrator.from_plan(PLAN, certificates=tmp_path):
        cv2.flip(IMAGE, 1)
    kept = json.loads((tmp_path / "certificates.json").read_text())
    assert len(kept) == 1
    ((key, certificate),) = kept.items()
    assert certificate == {"passed": True, "calls": 6, "largest_error": 0.0, "reason": ""}
    assert key.startswith("cv2.flip | any | cpu ")
    assert f"cv2 {cv2.__version__}" in key
    assert f"torch {torch.__version__}" in key

    monkeypatch.setattr(certificates_module, "probe", lambda *args: pytest.fail("probed again"))
    with PipelineMigrator.from_plan(PLAN, certificates=tmp_path) as second:
        cv2.flip(IMAGE, 1)
        assert second.get_stats()["calls_migrated"] == 1


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"a": 3}', '{"a": {"passed": 1}}', "\x00" * 50]
)
def test_a_broken_cache_is_an_empty_one(tmp_path, content: str) -> None:
    (tmp_path / "certificates.json").write_text(content)
    with PipelineMigrator.from_plan(PLAN, certificates=tmp_path) as migrator:
        cv2.flip(IMAGE, 1)
        assert migrator.get_stats()["calls_migrated"] == 1


def test_an_entry_that_is_wrong_here_is_never_used(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_backend(monkeypatch, "cv2.flip", lambda src, **options: src)
    expected = cv2.flip(IMAGE, 1)
    with PipelineMigrator.from_plan(PLAN, certificates=tmp_path) as migrator:
        got = cv2.flip(IMAGE, 1)
        stats = migrator.get_stats()
    assert np.array_equal(expected, got)
    assert stats["calls_migrated"] == 0
    assert "not equal to the original on this machine" in stats["fallbacks"][0]["reason"]
    assert stats["fallbacks"][0]["edit"] == "leave the call on the CPU"


def test_an_entry_that_fails_in_production_is_quarantined(
    tmp_path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    calls = []

    def sometimes_wrong(src, **options):
        calls.append(1)
        right = catalogue()["cv2.flip"].backend(src, **options)
        return right if len(calls) <= 8 else src

    with_backend(monkeypatch, "cv2.flip", sometimes_wrong)
    expected = cv2.flip(IMAGE, 1)
    with PipelineMigrator.from_plan(PLAN, certificates=tmp_path, verify_rate=1.0) as migrator:
        results = [cv2.flip(IMAGE, 1) for _ in range(6)]
        stats = migrator.get_stats()
    assert all(np.array_equal(expected, result) for result in results)
    assert list(stats["quarantined"]) == ["cv2.flip (any)"]
    assert stats["calls_migrated"] == 2
    assert stats["calls_fallback"] == 4  # the one that differed, and all after it
    assert "quarantined" in caplog.text


def test_verification_takes_the_first_call_and_a_share(tmp_path) -> None:
    with PipelineMigrator.from_plan(
        PLAN, certificates=tmp_path, verify_rate=0.25, seed=1
    ) as migrator:
        for _ in range(400):
            cv2.flip(IMAGE, 1)
        verified = migrator.get_stats()["calls_verified"]
    assert 70 < verified < 130
    with PipelineMigrator.from_plan(PLAN, certificates=tmp_path, verify_rate=0) as migrator:
        cv2.flip(IMAGE, 1)
        assert migrator.get_stats()["calls_verified"] == 0


def test_a_fallback_says_where_why_and_what_to_edit() -> None:
    with PipelineMigrator.from_plan(PLAN) as migrator:
        cv2.resize(IMAGE.astype(np.uint16), (5, 5))
        cv2.resize(IMAGE.astype(np.uint16), (5, 5))
        (first, second) = migrator.fallbacks()
    assert first.reason.en == "no kernel for uint16 images"
    assert first.edit.en == "convert the image to uint8 before the call"
    assert first.edit.zh
    assert first.line != second.line
    assert first.line.startswith(__file__)


def test_it_says_plainly_whether_moving_pays() -> None:
    with PipelineMigrator.from_plan(PLAN, verify_rate=1.0) as migrator:
        for _ in range(3):
            cv2.flip(IMAGE, 1)
    (verdict,) = migrator.verdicts()
    assert verdict.en.startswith(("moving cv2.flip does not pay: ", "moving cv2.flip pays: "))
    assert "cv2.flip" in verdict.zh


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        (np.zeros(3, np.uint8), np.zeros(3, np.int8), "dtype"),
        (np.zeros(3), np.zeros(4), "shape"),
        (np.zeros(3), [0, 0, 0], "instead of"),
        (np.zeros((3, 4)), np.zeros((4, 3)).T, "layout"),
        (np.zeros(3), np.array([0, 0, 1e-9]), "values differ"),
        ((1.0, np.zeros(2)), (1.0, np.ones(2)), "values differ"),
        (np.array([np.nan]), np.array([1.0]), "values differ"),
        (np.array([np.nan, 1]), np.array([np.nan, 1]), ""),
        (np.float64(3), 3.0, "instead of"),
    ],
)
def test_results_are_compared_as_a_caller_sees_them(expected, got, said: str) -> None:
    assert said in difference(expected, got, Case("exact"))
    assert bool(difference(expected, got, Case("exact"))) == bool(said)


def test_a_tolerance_is_taken_as_declared() -> None:
    one, other = np.array([0, 100], np.uint8), np.array([1, 99], np.uint8)
    assert difference(one, other, Case("", 1)) == ""
    assert difference(one, other, Case("", 0.5))
    assert difference(np.array([0.0, 1000.0]), np.array([0.5, 1000.0]), Case("", 0, 1e-3)) == ""


def test_a_folder_that_cannot_be_written_costs_only_the_cache(tmp_path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    kept = Certificates(blocked / "below")
    with PipelineMigrator.from_plan(PLAN, certificates=blocked / "below") as migrator:
        cv2.flip(IMAGE, 1)
        assert migrator.get_stats()["calls_migrated"] == 1
    assert kept.find(catalogue()["cv2.flip"], Case("any"), torch.device("cpu")) is None
