"""Batches of one kind are compiled together, and only what gives the same bits is used."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from torchstone.dataflow import PipelineMigrator
from torchstone.dataflow.migration.fusing import BATCHES, Fuser, OnBatch

IMAGES = [np.random.default_rng(n).integers(0, 256, (24, 18, 3), np.uint8) for n in range(4)]
PLAN = {"context_device_map": {"cv2.resize": "cuda:0", "cv2.cvtColor": "cuda:0"}}


def refuse(graph: Any) -> OnBatch:
    raise RuntimeError("no compiler here\nand more")


@pytest.mark.parametrize(
    ("compiler", "outcome"),
    [
        (lambda graph: graph, "fused"),
        (lambda graph: lambda batch: graph(batch) + 1, "the compiled function gives other bits"),
        (refuse, "RuntimeError: no compiler here"),
    ],
    ids=["right", "wrong", "none"],
)
def test_a_compiled_function_has_to_give_the_same_bits(compiler: Any, outcome: str) -> None:
    calls = []

    def compute(batch: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return batch * 2

    fuser = Fuser(is_wanted=True, compile=compiler)
    for _ in range(BATCHES + 3):
        assert torch.equal(fuser.run(compute, torch.arange(3), "steps", "f"), torch.arange(3) * 2)
    assert fuser.outcomes == {"f": outcome}
    assert len(calls) == BATCHES + 1 + (0 if outcome == "fused" else 3)


class Images(Dataset):
    def __len__(self) -> int:
        return 4 * BATCHES + 8

    def __getitem__(self, index: int) -> np.ndarray:
        small = cv2.cvtColor(cv2.resize(IMAGES[index % 4], (16, 12)), cv2.COLOR_BGR2RGB)
        return (small.astype(np.float32) / 255).transpose(2, 0, 1)


def check_loader(compiler: Any = None) -> None:
    expected = list(DataLoader(Images(), 4))
    migrator = PipelineMigrator.from_plan(PLAN, fuse=True)
    if compiler is not None:
        migrator._migration.fuser.compile = compiler
    with migrator:
        got = list(DataLoader(Images(), 4))
    assert all(map(torch.equal, expected, got))
    ((name, outcome),) = migrator.get_stats()["fused"].items()
    assert name == "cv2.resize, cv2.cvtColor, astype, true_divide, transpose"
    assert outcome == "fused"


def test_a_loader_s_batches_are_fused() -> None:
    check_loader(lambda graph: graph)


def check_single_calls(compiler: Any = None) -> None:
    migrator = PipelineMigrator.from_plan(PLAN, fuse=True)
    if compiler is not None:
        migrator._migration.fuser.compile = compiler
    expected = cv2.resize(IMAGES[0], (16, 12))
    with migrator:
        got = [cv2.resize(IMAGES[0], (16, 12)) for _ in range(BATCHES + 2)]
    assert all(np.array_equal(one, expected) for one in got)
    assert migrator.get_stats()["fused"] == {"cv2.resize": "fused"}


def test_single_calls_of_a_kind_are_fused() -> None:
    check_single_calls(lambda graph: graph)


@pytest.mark.side
def test_the_real_compiler_gives_the_same_bits() -> None:
    check_loader()
    check_single_calls()
