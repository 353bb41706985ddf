"""`torchstone trace show | diff | export`: recorded runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchstone.core.errors import UsageError
from torchstone.core.options import option, unknown
from torchstone.core.text import Text
from torchstone.doors.common import CommonOptions
from torchstone.doors.show import put, show

HELP = Text(
    en="recorded runs: show one, diff two, export as OpenTelemetry or Chrome trace",
    zh="已记录的运行：查看、对比两次运行、导出为 OpenTelemetry 或 Chrome trace",
)
ACTIONS = ("show", "diff", "export")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What to do with which runs."""

    words: tuple[str, ...] = option(
        (), "show RUN, diff RUN RUN, or export RUN; RUN is LOG_DIR/OP_NAME",
        "show RUN、diff RUN RUN 或 export RUN；RUN 为 LOG_DIR/OP_NAME",
        config=False, positional=True, metavar="ACTION RUN",
    )  # fmt: skip
    task: str = option("", "only this task", "只看该任务", config=False)
    step: int = option(0, "only this step, from 1", "只看该步骤，从 1 起", config=False)
    to: str = option(
        "otel", "format of export", "导出格式", choices=("otel", "chrome"), config=False
    )


OPTIONS = TraceOptions


def run(options: TraceOptions, common: CommonOptions) -> int:
    action, *paths = options.words or ("",)
    if action not in ACTIONS:
        raise unknown("trace", action, list(ACTIONS))
    wanted = 2 if action == "diff" else 1
    if len(paths) != wanted:
        raise UsageError(
            f"trace {action}",
            f"{len(paths)} runs",
            Text(f"{wanted} run(s)", f"{wanted} 个运行"),
            Text("pass LOG_DIR/OP_NAME", "请传入 LOG_DIR/OP_NAME"),
        )
    from torchstone.trace.run import load

    runs = [load(Path(path), options.task) for path in paths]
    if action == "export":
        from torchstone.trace.export import export

        put(export(runs[0], options.to), common)
        return 0
    if action == "diff":
        from torchstone.trace.compare import compare

        report = compare(*runs)
        show(report, common)
        return 1 if report.measures[0].value else 0
    from torchstone.trace.view import report_of

    show(report_of(runs[0], options.step or None), common)
    return 0
