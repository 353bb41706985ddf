"""`torchstone trace show | diff | export | replay`: recorded runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchstone.core.errors import UsageError
from torchstone.core.options import option, unknown
from torchstone.core.text import Text
from torchstone.cli.common import CommonOptions
from torchstone.cli.show import put, show
from torchstone.cli.torch_required import needs_torch

if TYPE_CHECKING:
    from torchstone.core.report import Report
    from torchstone.trace.replay import Again
    from torchstone.trace.run import Run

HELP = Text(
    en="recorded runs: show one, diff two, replay without a model, export to other tools",
    zh="已记录的运行：查看、对比、无模型重放、导出到其他工具",
)
ACTIONS = ("show", "diff", "export", "replay")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What to do with which runs."""

    words: tuple[str, ...] = option(
        (), "show RUN, diff RUN RUN, export RUN, or replay RUN; RUN is LOG_DIR/OP_NAME",
        "show RUN、diff RUN RUN、export RUN 或 replay RUN；RUN 为 LOG_DIR/OP_NAME",
        config=False, positional=True, metavar="ACTION RUN",
    )  # fmt: skip
    task: str = option("", "only this task", "只看该任务", config=False)
    step: int = option(0, "only this step, from 1", "只看该步骤，从 1 起", config=False)
    to: str = option(
        "otel", "format of export", "导出格式", choices=("otel", "chrome"), config=False
    )
    from_step: int = option(
        0, "replay: the record up to this step, then the model of --model (a fork)",
        "replay：该步骤之前用记录，之后使用 --model 的模型（分叉）", config=False, metavar="STEP",
    )  # fmt: skip
    log_dir: str = option(
        "", "replay: record the new run here; a fork needs it",
        "replay：把新运行记录到此处；分叉时必需", config=False, metavar="DIR",
    )  # fmt: skip
    model: str = option("", "fork: the live model", "分叉：实际模型", config=False)
    base_url: str = option(
        "", "fork: address of an OpenAI-compatible server",
        "分叉：OpenAI 兼容服务地址", config=False, metavar="URL",
    )  # fmt: skip
    max_tokens: int = option(
        200_000, "fork: tokens that the live model may use", "分叉：实际模型可用的 token 数",
        config=False,
    )  # fmt: skip
    max_seconds: float = option(
        3600.0, "fork: seconds that it may take", "分叉：最长秒数", config=False
    )
    provider: str = option(
        "http", "fork: how the model is reached", "分叉：访问模型的方式",
        choices=("http", "openai", "anthropic"), config=False,
    )  # fmt: skip


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
    if action == "replay":
        return _replay(runs[0], options, common)
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


def _replay(run: Run, options: TraceOptions, common: CommonOptions) -> int:
    """Tools run again on recorded answers; exit 1 when anything comes out otherwise."""
    from torchstone.trace.replay import replay, settings_of

    settings = settings_of(run)
    again = _again(str(settings.get("tool")))
    if options.from_step or options.model:
        return _fork(run, options, common)
    if options.log_dir:
        report = replay(run, again(""), _empty(run, options))
    else:
        with tempfile.TemporaryDirectory(prefix="torchstone-replay-") as folder:
            report = replay(run, again(""), Path(folder))
    show(report, common)
    return 1 if report.findings else 0


def _fork(run: Run, options: TraceOptions, common: CommonOptions) -> int:
    """The record up to a step, then a live model; the exit code is that of the new run."""
    from torchstone.trace.connect import connect
    from torchstone.trace.replay import fork, settings_of

    if options.from_step < 1 or not options.log_dir:
        raise UsageError(
            "trace replay",
            "a model" if options.from_step < 1 else "no --log-dir",
            Text("--from-step STEP, --model NAME and --log-dir DIR",
                 "--from-step 步骤、--model 名称和 --log-dir 目录"),
            Text("leave all three out to replay without a model", "无模型重放时三者都不要写"),
        )  # fmt: skip
    live = connect(
        options.model, options.base_url, options.provider,
        max_tokens=options.max_tokens, max_seconds=options.max_seconds,
    )  # fmt: skip
    again = _again(str(settings_of(run).get("tool")))(options.model)
    report: Report = fork(run, again, options.from_step, live, _empty(run, options))
    show(report, common)
    accepted = any(item.name == "accepted" and item.value for item in report.measures)
    return 3 if report.failed else 0 if accepted else 1


def _again(tool: str) -> Callable[[str], Again]:
    """Who can do a recorded run again, from the name that the run recorded."""
    if tool != "kernel":
        raise unknown("trace replay: tool of the run", tool, ["kernel"])
    needs_torch("trace replay")
    from torchstone.kernels.generate import again
    from torchstone.kernels.verifier import verify

    return lambda model: again(verify, model)


def _empty(run: Run, options: TraceOptions) -> Path:
    """A place for the new run; a folder that holds this operator already would mix the two."""
    folder = Path(options.log_dir).expanduser()
    if (folder / run.folder.name).exists():
        raise UsageError(
            "--log-dir",
            str(folder),
            Text(f"a folder without {run.folder.name}", f"不含 {run.folder.name} 的文件夹"),
            Text("choose another folder", "请换一个文件夹"),
        )
    return folder
