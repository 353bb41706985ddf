"""`torchstone flow trace | steps | plan | run | export`: a data pipeline, traced, placed, moved, exported."""

from __future__ import annotations

from torchstone.cli.command import Subcommand
from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import show
from torchstone.core.text import Text
from torchstone.dataflow.options import (
    ExportOptions,
    PlanOptions,
    RunOptions,
    StepsOptions,
    TraceOptions,
)

HELP = Text(
    en="data pipelines: RUNS a script and traces its data, plans what moves to a device, runs the plan",
    zh="数据管道：运行脚本并追踪其数据，规划哪些算子移到设备，按计划运行",
)
FORMATS = ("text", "json", "markdown", "html", "agent")
OPTIONS = TraceOptions
CONFIGURABLE = True
PASSES_ARGUMENTS = True
"""What follows `--` belongs to the script."""


def _trace(options: TraceOptions, common: CommonOptions) -> int:
    from torchstone.dataflow.run import trace_command

    report = trace_command(options)
    show(report, common)
    return 3 if report.failed else 0


def _steps(options: StepsOptions, common: CommonOptions) -> int:
    needs_torch("flow steps")
    from torchstone.dataflow.steps.command import steps_command

    report = steps_command(options)
    show(report, common)
    return 3 if report.failed else 0


def _plan(options: PlanOptions, common: CommonOptions) -> int:
    needs_torch("flow plan")
    from torchstone.dataflow.run import plan_command

    show(plan_command(options), common)
    return 0


def _run(options: RunOptions, common: CommonOptions) -> int:
    needs_torch("flow run")
    from torchstone.dataflow.migrated_run import run_command

    report = run_command(options)
    show(report, common)
    return 3 if report.failed else 1 if report.findings else 0


def _export(options: ExportOptions, common: CommonOptions) -> int:
    needs_torch("flow export")
    from torchstone.dataflow.migration.export.ray_script import export_command

    show(export_command(options), common)
    return 0


SUBCOMMANDS = {
    "trace": Subcommand(
        "flow trace",
        Text("run a script or a function and record what it does with its data",
             "运行脚本或函数，记录其对数据的操作"),
        TraceOptions, _trace,
    ),
    "steps": Subcommand(
        "flow steps",
        Text("run a training script for a few steps: time waiting for data, in Python, on the device",
             "运行训练脚本若干步：等待数据、Python 与设备各占多少时间"),
        StepsOptions, _steps,
    ),
    "plan": Subcommand(
        "flow plan",
        Text("which operators move to a device, what that gains, what stays and why",
             "哪些算子移到设备、收益多少、哪些留下及原因"),
        PlanOptions, _plan,
    ),
    "run": Subcommand(
        "flow run",
        Text("run the script as it is and with the plan, and compare the results",
             "分别按原样与按计划运行脚本，并比对结果"),
        RunOptions, _run,
    ),
    "export": Subcommand(
        "flow export",
        Text("write the plan as a pipeline for another engine: --ray",
             "将计划导出为其他引擎的管道：--ray"),
        ExportOptions, _export,
    ),
}  # fmt: skip
