"""For the user's own tests: do all ranks of a function communicate alike?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchstone.dryrun.harness import HarnessError
from torchstone.dryrun.ranks.play import play
from torchstone.dryrun.ranks.tell import summary
from torchstone.dryrun.reporting.ranks.report import report_on
from torchstone.dryrun.settings import ScriptSettings


def expect_same_collectives(
    function: Callable[..., Any],
    *args: Any,
    world_size: int = 2,
    local_world_size: int = 0,
    max_seconds: float = 60.0,
) -> None:
    """Call `function(*args)` on every rank of a job, with fake parameters and no GPU; AssertionError
    with both sides when the ranks do not communicate alike, HarnessError when they could not be played. RANK, WORLD_SIZE and LOCAL_RANK are set
    as a launcher sets them."""
    settings = ScriptSettings(
        world_size=world_size,
        local_world_size=local_world_size,
        play_ranks=True,
        max_seconds=max_seconds,
        max_paths=1,
        try_fixes=False,
    )
    threads = torch.get_num_threads()
    ranks = tuple(range(world_size))
    try:
        played = play(settings, ranks, lambda _: function(*args))
    finally:
        torch.set_num_threads(threads)
    name = getattr(function, "__qualname__", "function")
    report = report_on(name, summary(settings, ranks, played))
    if not report.findings and (stopped := [gap for gap in report.gaps if gap.failed]):
        said = "; ".join(gap.reason.say("en") for gap in stopped)
        raise HarnessError(
            f"{name} was not played to its end, so that nothing is known of it: {said}"
        )
    if report.findings:
        raise AssertionError("\n".join(_lines(report.to("text", width=0))))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]
