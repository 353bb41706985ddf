"""Programs that make a process group or start their ranks themselves, run without a number of ranks."""

from __future__ import annotations

import pytest

from tests.dryrun.conftest import Run

STEP = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

def train(rank, ranks):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "29511"
    dist.init_process_group("BACKEND", rank=rank, world_size=ranks)
    model = DDP(torch.nn.Linear(4, 2).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4).cuda()).sum().backward()
        optimizer.step()
    if rank == 0 and WAITS:
        dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
"""


def made(start: str, backend: str = "nccl", waits: bool = False) -> str:
    return STEP.replace("BACKEND", backend).replace("WAITS", str(waits)) + f"    {start}\n"


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_a_group_of_one_trains(run: Run, backend: str) -> None:
    report = run(made("train(0, 1)", backend))
    measures = {item.name: item.value for item in report.measures}
    assert not report.findings
    assert not report.gaps
    assert measures["optimizer_steps"] == 3


def test_ranks_that_the_program_starts_are_played(run: Run) -> None:
    start = "mp.spawn(train, args=(2,), nprocs=2)"
    report = run(made(start))
    assert not report.findings
    assert not report.gaps
    assert {item.name: item.value for item in report.measures}["optimizer_steps"] == 3
    (found,) = run(made(start, waits=True)).findings
    assert found.rule == "DR603"  # a rank that ended while another waits for it
