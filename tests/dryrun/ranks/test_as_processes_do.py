"""Ranks differ as processes do, and buffers of unfinished collectives are left alone."""

from __future__ import annotations

from tests.dryrun.conftest import Run
from torchstone.dryrun.reporting.answer import name_ranks

_START = """
import random
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
"""


def test_the_order_of_a_set_of_strings_is_that_of_a_process(run: Run) -> None:
    program = (
        _START
        + """
names = {"loss", "accuracy", "f1", "precision", "recall"}
for name in ORDER:
    dist.all_reduce(torch.zeros(len(name)))
"""
    )
    assert [
        item.rule for item in run(program.replace("ORDER", "names"), world_size=4).findings
    ] == ["DR602"]
    assert not run(program.replace("ORDER", "sorted(names)"), world_size=4).findings


def test_every_rank_draws_numbers_of_its_own(run: Run) -> None:
    program = _START + "SEED\nif random.random() < 0.5:\n    dist.all_reduce(torch.zeros(3))\n"
    assert run(program.replace("SEED", ""), world_size=4).findings
    assert not run(program.replace("SEED", "random.seed(0)"), world_size=4).findings


def test_a_buffer_that_a_collective_still_uses(run: Run) -> None:
    program = (
        _START
        + """
gradient = torch.ones(4) * dist.get_rank()
work = dist.all_reduce(gradient, async_op=True)
FIRST
SECOND
"""
    )
    wait = "work.wait()"
    for use in ("gradient.add_(1)", "total = gradient * 2"):
        early = program.replace("FIRST", use).replace("SECOND", wait)
        (finding,) = run(early, world_size=2).findings
        assert (finding.rule, finding.line) == ("DR611", 9), use
        late = program.replace("FIRST", wait).replace("SECOND", use)
        assert not run(late, world_size=2).findings, use


def test_ranks_that_are_apart_are_no_range() -> None:
    assert name_ranks((0, 2)) == "0, 2"
    assert name_ranks((0, 1, 2, 5)) == "0–2, 5"


def test_gradients_that_are_reduced_over_the_wrong_group(run: Run) -> None:
    program = (
        _START
        + """
groups = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3], [0, 2], [1, 3])]
rank = dist.get_rank()
tp, dp = groups[rank // 2], groups[2 + rank % 2]
torch.manual_seed(rank % 2)
net = torch.nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
for p in net.parameters():
    dist.broadcast(p.data, rank % 2, group=dp)
net(torch.randn(6, 8)).sum().backward()
for p in net.parameters():
    for group in GROUPS:
        dist.all_reduce(p.grad, group=group)
opt.step()
"""
    )
    (finding,) = run(program.replace("GROUPS", "[tp]"), world_size=4).findings
    assert (finding.rule, finding.line) == ("DR612", 18)
    assert not run(program.replace("GROUPS", "[dp]"), world_size=4).findings
    both = run(program.replace("GROUPS", "[dp, tp]"), world_size=4)
    assert "DR612" not in [item.rule for item in both.findings]
