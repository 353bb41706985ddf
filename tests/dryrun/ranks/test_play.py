"""All ranks, in real processes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchstone.dryrun import expect_same_collectives
from torchstone.dryrun.ranks.classes import ranks_to_play
from torchstone.dryrun.ranks.faults import faults_of
from torchstone.dryrun.ranks.play import play
from torchstone.dryrun.settings import ScriptSettings


def train(steps: int = 2, forward: str = "wrapped") -> None:
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(4, 2).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        call = model if forward == "wrapped" else model.module
        call(torch.randn(3, 4).cuda()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_a_right_program_is_not_accused() -> None:
    expect_same_collectives(train, world_size=2)


def test_replicas_with_gradients_of_their_own_are_found() -> None:
    with pytest.raises(AssertionError, match="gradients of this rank alone"):
        expect_same_collectives(train, 2, "around", world_size=2)


def on_rank_zero() -> None:
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        dist.barrier()
    dist.all_reduce(torch.ones(2))


def test_the_first_divergence_names_both_lines_and_the_branch() -> None:
    with pytest.raises(AssertionError) as caught:
        expect_same_collectives(on_rank_zero, world_size=3)
    text = str(caught.value)
    assert "ranks do not call the same collective: rank 0: barrier()" in text
    assert "ranks 1-2: all_reduce(float32, (2,), sum)" in text
    assert "if dist.get_rank() == 0" in text


def local_decision() -> None:
    dist.init_process_group("nccl")
    loss = nn.Linear(4, 1)(torch.randn(2, 4)).mean()
    if torch.isnan(loss):
        return
    dist.all_reduce(torch.ones(1))


def shared_decision() -> None:
    dist.init_process_group("nccl")
    loss = nn.Linear(4, 1)(torch.randn(2, 4)).mean()
    bad = torch.isnan(loss).float()
    dist.all_reduce(bad)
    if bad.item() > 0:
        return
    dist.all_reduce(torch.ones(1))


def test_a_decision_on_a_value_of_one_rank_is_found_and_a_shared_one_is_not() -> None:
    expect_same_collectives(shared_decision)
    with pytest.raises(AssertionError, match="not the same on all ranks"):
        expect_same_collectives(local_decision)


def values_steer() -> None:
    dist.init_process_group("gloo")
    count = torch.tensor(dist.get_rank() + 1)
    dist.all_reduce(count, op=dist.ReduceOp.MAX)
    everyone: list[object] = [None, None]
    dist.all_gather_object(everyone, {"rank": dist.get_rank()})
    assert everyone == [{"rank": 0}, {"rank": 1}]
    for _ in range(int(count)):
        dist.all_reduce(torch.ones(1))


def test_small_values_and_objects_are_really_exchanged() -> None:
    expect_same_collectives(values_steer)


def both_send_first() -> None:
    dist.init_process_group("gloo")
    peer = 1 - dist.get_rank()
    dist.send(torch.ones(4), peer)
    dist.recv(torch.empty(4), peer)


def test_a_deadlock_is_told_as_a_ring() -> None:
    with pytest.raises(AssertionError, match="rank 0 → rank 1 → rank 0"):
        expect_same_collectives(both_send_first)


def one_raises() -> None:
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        raise ValueError("bad sample")
    dist.barrier()


def test_a_rank_that_raises_explains_the_wait_of_the_others() -> None:
    with pytest.raises(AssertionError, match="ValueError: bad sample"):
        expect_same_collectives(one_raises)


def sharded() -> None:
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("nccl")
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).cuda()
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 8, device="cuda")).sum().backward()
    if dist.get_rank() == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    dist.barrier()


def test_collectives_inside_sharded_tensors_are_seen() -> None:
    with pytest.raises(AssertionError, match="all_reduce"):
        expect_same_collectives(sharded)


def interleaved() -> None:
    from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    stages = [
        PipelineStage(nn.Linear(4, 4), i, 2 * world, torch.device("cpu"))
        for i in (rank, rank + world)
    ]
    schedule = ScheduleInterleaved1F1B(stages, n_microbatches=8, loss_fn=nn.functional.mse_loss)
    if rank == 0:
        schedule.step(torch.randn(16, 4))
    else:
        schedule.step(target=torch.randn(16, 4))


def test_a_step_of_a_pipeline_is_not_cut_off_in_the_middle() -> None:
    expect_same_collectives(interleaved, world_size=2)


def test_large_worlds_are_played_at_their_boundaries() -> None:
    assert ranks_to_play(8, 8) == tuple(range(8))
    chosen = ranks_to_play(1024, 8)
    assert {0, 7, 8, 1015, 1023} <= set(chosen)
    assert len(chosen) < 32
    assert chosen == ranks_to_play(1024, 8)


def test_a_checkpoint_of_rank_zero_is_loaded_by_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = tmp_path / "train.py"
    script.write_text(CHECKPOINT, "utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    settings = ScriptSettings(
        script=str(script), world_size=2, play_ranks=True, scratch=str(scratch), allow_write=True
    )
    (played, *_) = play(
        settings, (0, 1), lambda _: exec(compile(CHECKPOINT, str(script), "exec"), {})
    )
    assert [record.ending for record in played.records.values()] == ["end", "end"]
    assert not faults_of(played)


CHECKPOINT = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.Linear(4, 2)
path = os.path.join(os.environ["TMPDIR"], "c.pt")
if dist.get_rank() == 0:
    torch.save({"model": model.state_dict(), "epoch": 3}, path)
dist.barrier()
state = torch.load(path)
assert state["epoch"] == 3
model.load_state_dict(state["model"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(3, 4)).sum().backward()
for parameter in model.parameters():
    dist.all_reduce(parameter.grad)
optimizer.step()
"""


def large_tensor_parallel() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    mesh = init_device_mesh("cuda", (2,))
    model = parallelize_module(nn.Linear(1024, 2048, device="cuda"), mesh, ColwiseParallel())
    model(torch.randn(2, 1024, device="cuda")).sum().backward()


def test_tensors_of_another_fake_mode_are_left_alone() -> None:
    expect_same_collectives(large_tensor_parallel, world_size=2)
