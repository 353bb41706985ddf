"""What is wrong on a rank alone is told in a world of ranks too, once, with the ranks that have it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchstone.core.report import Report
from torchstone.dryrun.ranks.play import play
from torchstone.dryrun.ranks.tell import summary
from torchstone.dryrun.reporting.ranks.report import report_on
from torchstone.dryrun.settings import ScriptSettings


def report_of(function: Callable[[], None], world_size: int = 2) -> Report:
    settings = ScriptSettings(world_size=world_size, play_ranks=True)
    ranks = tuple(range(world_size))
    return report_on("f", summary(settings, ranks, play(settings, ranks, lambda _: function())))


def broadcast_on_the_last_rank() -> None:
    dist.init_process_group("nccl")
    made = nn.Linear(4, 1)(torch.ones(8, 4))
    wanted = torch.ones(8)
    if dist.get_rank() == 2:
        (made - wanted).mean().backward()
    else:
        (made.squeeze(-1) - wanted).mean().backward()
    (made.double() * made).mean()


def test_hazards_are_merged_over_ranks() -> None:
    found = {
        item.rule: item.message("en") for item in report_of(broadcast_on_the_last_rank, 3).findings
    }
    assert found["DR201"].endswith("(on rank 2)")
    assert found["DR202"].endswith("(on all ranks)")
    assert len(found) == 2


def written_in_place() -> None:
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(4, 1))
    made = model(torch.ones(8, 4)).exp()
    made += 1
    made.sum().backward()


def test_a_write_that_the_backward_refuses_is_told_at_its_line() -> None:
    (found,) = report_of(written_in_place).findings
    assert "in-place write" in found.message("en")
    (snippet, *_) = found.evidence
    assert "made += 1" in snippet.text  # type: ignore[attr-defined]


def wrong_features() -> None:
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(5, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    dist.barrier()


def test_a_fix_is_tried_on_one_rank_and_the_others_do_not_hear_of_it() -> None:
    report = report_of(wrong_features)
    (found,) = report.findings
    assert found.rule == "DR600"
    assert "in_features=4" in found.remedy.say("en")
    (lanes,) = (item for item in report.measures if item.name == "ranks")
    assert "|" not in str(lanes.evidence[0].rows[0][1])  # type: ignore[attr-defined]
