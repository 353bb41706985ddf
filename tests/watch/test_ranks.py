"""Real processes under torchrun: the rank that differs is named, and one rank writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from torchstone.watch.record.runfile import load_run

PROGRAM = Path(__file__).with_name("rank_program.py")


KINDS = {
    "healthy": "",
    "replica": "replicas: rank 1 holds other weights",
    "same-data": "replicas: all ranks see the same batch",
    "rate": "replicas: rank 1 has another learning rate",
    "sharded": "",
}


def test_the_rank_that_differs_is_named(tmp_path: Path) -> None:
    """All kinds, one after the other, in one pair of processes: starting them takes longest."""
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(PROGRAM), str(tmp_path), *KINDS],
        capture_output=True, text=True, timeout=400, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert "watching has ended" not in result.stderr, result.stderr
    for kind, said in KINDS.items():
        out = "\n".join((tmp_path / f"{kind}.rank{rank}").read_text("utf-8") for rank in range(2))
        if said:
            assert out.count(said) == 2, (kind, out)
        else:
            assert out.strip() == "", kind
        run = load_run(tmp_path / kind)
        assert run.scalars[-1, 0] == 60, kind
        assert not (tmp_path / f"{kind}-2").exists(), "one rank writes"
    assert (run.column("grad_norm") > 0).all(), "shards are read where they lie"
