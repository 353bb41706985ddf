"""`torchstone dryrun SCRIPT [-- ARGS]`: the whole job on a laptop, before a GPU is rented."""

from __future__ import annotations

from dataclasses import replace

from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import show
from torchstone.cli.torchrun import is_for_torchrun
from torchstone.core.answer import Fact
from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.dryrun.options import DryRunOptions

HELP = Text(
    en="RUNS a training script with fake weights and no GPU: shapes, memory, every rank of the job",
    zh="以虚拟权重、无需 GPU 真实运行训练脚本：形状、显存与分布式任务的每个 rank",
)
OPTIONS = DryRunOptions
CONFIGURABLE = True
_RANKS = 2
"""The fewest that can disagree."""
_WHY = Text(
    f"{_RANKS}, because the script is started by torchrun (--world-size N for more)",
    f"{_RANKS}，因为该脚本由 torchrun 启动（用 --world-size N 指定更多）",
)
PASSES_ARGUMENTS = True
"""What follows `--` belongs to the script."""


def run(options: DryRunOptions, common: CommonOptions) -> int:
    if not options.target:
        raise UsageError(
            "dryrun", "no target", Text("a script or module:Model", "脚本或 module:Model"),
            Text("for example: torchstone dryrun train.py -- --batch-size 64",
                 "例如：torchstone dryrun train.py -- --batch-size 64"),
        )  # fmt: skip
    needs_torch("dryrun")
    from torchstone.dryrun.run import dry_run_command

    by_itself = not options.world_size and is_for_torchrun(options.target)
    if by_itself:
        options = replace(options, world_size=_RANKS)
    report = dry_run_command(options)
    if by_itself and report.answer is not None:
        about = (Fact(Text("ranks", "rank 数"), _WHY), *report.answer.about)
        report = replace(report, answer=replace(report.answer, about=about))
    show(report, common)
    return 3 if report.failed else 1 if report.findings else 0
