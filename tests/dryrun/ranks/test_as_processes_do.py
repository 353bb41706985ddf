"""Ranks differ as processes do, and buffers of unfinished collectives are left alone."""

from __future__ import annotations

from tests.dryrun.conftest import Run
from torchstone.core.text import words
from torchstone.dryrun.reporting.answer import name_ranks

_START = """
import random
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
"""


def test_ranks_order_sets_and_draw_numbers_as_processes_do(run: Run) -> None:
    program = (
        _START
        + """
names = {"loss", "accuracy", "f1", "precision", "recall"}
SEED
for name in ORDER:
    dist.all_reduce(torch.zeros(len(name)))
if random.random() < 0.5:
    dist.all_reduce(torch.zeros(3))
"""
    )

    def rules(order: str, seed: str) -> list[str]:
        text = program.replace("ORDER", order).replace("SEED", seed)
        return [item.rule for item in run(text, world_size=3).findings]

    assert rules("names", "random.seed(0)") == ["DR602"]
    assert rules("sorted(names)", "") == ["DR603"]
    assert rules("sorted(names)", "random.seed(0)") == []


def test_a_buffer_that_a_collective_still_uses(run: Run) -> None:
    program = (
        _START
        + """
one, two, three = (torch.ones(4) * dist.get_rank() for _ in range(3))
work = dist.all_reduce(one, async_op=True)
one.add_(1)
work.wait()
work = dist.all_reduce(two, async_op=True)
total = two * 2
work.wait()
work = dist.all_reduce(three, async_op=True)
total = one * 2
work.wait()
total = three.add_(1) * 2
"""
    )
    found = [(item.rule, item.line) for item in run(program, world_size=2).findings]
    assert sorted(found) == [("DR611", 9), ("DR611", 12)]


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
for p in net.parameters() if BROADCAST else ():
    dist.broadcast(p.data, rank % 2, group=dp)
net(torch.randn(6, 8)).sum().backward()
for p in net.parameters():
    for group in GROUPS:
        dist.all_reduce(p.grad, group=group)
opt.step()
"""
    )
    for equal_by in ("True", "False"):  # a broadcast, or the seed alone
        one = program.replace("GROUPS", "[tp]").replace("BROADCAST", equal_by)
        (finding,) = run(one, world_size=4).findings
        assert (finding.rule, finding.line) == ("DR612", 18)
    both = run(program.replace("GROUPS", "[dp, tp]").replace("BROADCAST", "True"), world_size=4)
    assert "DR612" not in [item.rule for item in both.findings]


def test_the_parts_that_ranks_ran_are_listed(run: Run) -> None:
    program = (
        _START
        + """
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(ROUNDS):
    opt.zero_grad()
    net(torch.randn(6, 8)).sum().backward()
    opt.step()
if dist.get_rank() == 1:
    torch.save(net.state_dict(), "state.pt")
"""
    )
    whole = run(program.replace("ROUNDS", "2"), world_size=2)
    (covered,) = (item for item in whole.measures if item.name == "covered")
    assert "optimizer step (2), checkpoint saved (1)" in words(covered.how, "en")
    stopped = run(program.replace("ROUNDS", "200"), world_size=2)
    headline = str(stopped.to("text")).splitlines()[0]
    assert "saving a checkpoint" in headline.partition("; not reached: ")[2]
