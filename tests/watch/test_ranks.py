"""Real processes under torchrun: the rank that differs is named, and one rank writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.watch.runfile import load_run

PROGRAM = Path(__file__).with_name("rank_program.py")


def _run(what: str, folder: Path) -> tuple[str, str]:
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(PROGRAM), what, str(folder)],
        capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    told = [Path(f"{folder}.rank{rank}").read_text("utf-8") for rank in range(2)]
    return "\n".join(told), result.stderr


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("healthy", ""),
        ("replica", "replicas: rank 1 holds other weights"),
        ("same-data", "replicas: all ranks see the same batch"),
        ("rate", "replicas: rank 1 has another learning rate"),
    ],
)
def test_the_rank_that_differs_is_named(what: str, said: str, tmp_path: Path) -> None:
    out, _ = _run(what, tmp_path / "run")
    if said:
        assert out.count(said) == 2, out
    else:
        assert out.strip() == ""
    run = load_run(tmp_path / "run")
    assert run.scalars[-1, 0] == 60
    assert not (tmp_path / "run-2").exists(), "one rank writes"


def test_sharded_parameters_are_read_where_they_lie(tmp_path: Path) -> None:
    out, error = _run("sharded", tmp_path / "run")
    assert "ended" not in error, error
    assert "replicas" not in out
    run = load_run(tmp_path / "run")
    assert (run.column("grad_norm") > 0).all()
