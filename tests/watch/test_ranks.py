"""Real processes under torchrun: the rank that differs is named, and one rank writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.watch.runfile import load_run

PROGRAM = Path(__file__).with_name("rank_program.py")


KINDS = {
    "healthy": "",
    "replica": "replicas: rank 1 holds other weights",
    "same-data": "replicas: all ranks see the same batch",
    "rate": "replicas: rank 1 has another learning rate",
    "sharded": "",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All kinds, one after the other, in one pair of processes: starting them takes longest."""
    folder = tmp_path_factory.mktemp("ranks")
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(PROGRAM), str(folder), *KINDS],
        capture_output=True, text=True, timeout=400, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert "watching has ended" not in result.stderr, result.stderr
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_rank_that_differs_is_named(kind: str, ran: Path) -> None:
    out = "\n".join((ran / f"{kind}.rank{rank}").read_text("utf-8") for rank in range(2))
    if KINDS[kind]:
        assert out.count(KINDS[kind]) == 2, out
    else:
        assert out.strip() == ""
    run = load_run(ran / kind)
    assert run.scalars[-1, 0] == 60
    assert not (ran / f"{kind}-2").exists(), "one rank writes"


def test_sharded_parameters_are_read_where_they_lie(ran: Path) -> None:
    assert (load_run(ran / "sharded").column("grad_norm") > 0).all()
