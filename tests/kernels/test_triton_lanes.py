"""Programs of a Triton launch side by side: the same answers as one after the other, and the same faults."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from torchstone.kernels import Candidate, verify
from torchstone.kernels.harness.kits.triton_lanes import batches
from torchstone.kernels.problem import problem_from_source
from torchstone.kernels.sessions import processes
from torchstone.kernels.sessions.workshop import Workshop

PROBLEM = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(700, 1000)]


def get_init_inputs():
    return []
"""
RELU = """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            relu[({grid},)](x, y, x.numel(), BLOCK=256)
        return y
"""
KERNELS = Path(__file__).parent / "triton_kernels.py"


def test_kernels_give_what_they_give_one_program_after_the_other() -> None:
    """Loops and conditions that differ, reductions, scans, products, atomics, a race, an error."""
    done = subprocess.run(
        [sys.executable, str(KERNELS)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wrong = {name: item for name, item in found.items() if not item["same"]}
    assert not wrong
    assert found["race"]["faults"] == ["race: two programs write different values"]
    assert found["outside"]["faults"] == ["out-of-bounds write"]
    assert "gather" in found["error"]["raised"]
    # of the work of one program after the other
    dear = {name for name, item in found.items() if item["share"] > 0.25}
    assert dear == {"one by one"}


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (3, 5, 4), (100, 1, 3)])
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_every_program_is_in_one_batch(grid: tuple[int, int, int], size: int) -> None:
    found = [tuple(place) for places in batches(grid, size) for place in places.tolist()]
    assert sorted([(0, 0, 0), *found]) == sorted(np.ndindex(grid))
    assert not found or found.index(tuple(side - 1 for side in grid)) < size
    assert len(found) == math.prod(grid) - 1


def judged(workshop: Workshop, grid: str, timeout: float = 60.0) -> tuple[str, str]:
    found = verify(
        problem_from_source(PROBLEM, "large"), Candidate(RELU.format(grid=grid), "triton"), seeds=2,
        timeout_seconds=timeout, workshop=workshop,
    )  # fmt: skip
    size = next(item for item in found.results if item.gate == "size")
    return found.outcome, size.detail.en


@pytest.mark.usefixtures("few_sizes")
def test_an_interpreted_kernel_is_run_at_the_problems_own_size(workshop: Workshop) -> None:
    whole = "triton.cdiv(x.numel(), 256)"
    assert judged(workshop, whole)[0] == "accepted"
    outcome, said = judged(workshop, f"{whole} - int(x.numel() == 700000)")
    assert outcome == "rejected"
    assert "never written: [699, 904] to [699, 999] (96 of 700000 elements)" in said


def test_a_kernel_that_refuses_cut_inputs_gets_larger_ones(
    tmp_path: Path, workshop: Workshop, few_sizes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of its own may not fit into what was cut for the interpreter."""
    monkeypatch.setattr(processes, "MOST_INTERPRETED", 1 << 10)
    problem = tmp_path / "problem.py"
    problem.write_text(ROWS.replace("ROWS", "12, 256"))
    verdict = verify(problem, Candidate(WHOLE_ROWS, "triton"), seeds=2, workshop=workshop)
    assert verdict.outcome == "accepted", verdict.error_log()


ROWS = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(ROWS)]


def get_init_inputs():
    return []
"""
WHOLE_ROWS = """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(y + at, tl.where(value < 0, 0.0, value))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape[-1] != 256:
            raise ValueError("rows of 256")
        x = x.contiguous()
        y = torch.empty_like(x)
        relu[(x.numel() // 256,)](x, y, BLOCK=256)
        return y
"""
