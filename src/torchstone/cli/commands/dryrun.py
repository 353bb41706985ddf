"""`torchstone dryrun SCRIPT [-- ARGS]`: the whole job on a laptop, before a GPU is rented."""

from __future__ import annotations

from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import show
from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.dryrun.options import DryRunOptions

HELP = Text(
    en="RUNS a training script with fake weights and no GPU: shapes, memory, every rank of the job",
    zh="以虚拟权重、无需 GPU 真实运行训练脚本：形状、显存与分布式任务的每个 rank",
)
OPTIONS = DryRunOptions
CONFIGURABLE = True
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

    report = dry_run_command(options)
    show(report, common)
    return 3 if report.failed else 1 if report.findings else 0
