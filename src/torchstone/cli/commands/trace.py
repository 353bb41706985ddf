"""`torchstone trace show | diff | export | replay`: recorded runs."""

from __future__ import annotations

import functools
import gc
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchstone.cli.command import Subcommand
from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import put, show
from torchstone.core.errors import UsageError
from torchstone.core.limits import check_count, check_seconds
from torchstone.core.options import option, unknown
from torchstone.core.text import Text

if TYPE_CHECKING:
    from torchstone.core.report import Report
    from torchstone.trace.replay import Again
    from torchstone.trace.run import Run

HELP = Text(
    en="recorded runs: show one, diff two, replay without a model, export to other tools",
    zh="已记录的运行：查看、对比、无模型重放、导出到其他工具",
)
FORMATS = ("text", "json", "markdown", "html", "agent")


def _run_option(many: bool) -> Any:
    return option(
        (), "a run: LOG_DIR/OP_NAME", "一次运行：LOG_DIR/OP_NAME",
        config=False, positional=True, metavar="RUN RUN" if many else "RUN",
    )  # fmt: skip


def _task_option() -> Any:
    return option("", "only this task", "只看该任务", config=False)


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """Which run, and which part of it."""

    words: tuple[str, ...] = _run_option(False)
    task: str = _task_option()
    step: int = option(0, "only this step, from 1", "只看该步骤，从 1 起", config=False)


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """Which two runs."""

    words: tuple[str, ...] = _run_option(True)
    task: str = _task_option()


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Which run, and for which tool."""

    words: tuple[str, ...] = _run_option(False)
    task: str = _task_option()
    to: str = option("otel", "format", "导出格式", choices=("otel", "chrome"), config=False)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Which run is done again, and from which step on by a live model."""

    words: tuple[str, ...] = _run_option(False)
    task: str = _task_option()
    from_step: int = option(
        0, "the record up to this step, then the model of --model (a fork)",
        "该步骤之前用记录，之后使用 --model 的模型（分叉）", config=False, metavar="STEP",
    )  # fmt: skip
    log_dir: str = option(
        "", "record the new run here; a fork needs it",
        "把新运行记录到此处；分叉时必需", config=False, metavar="DIR",
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


def _load(action: str, words: tuple[str, ...], task: str, wanted: int = 1) -> list[Run]:
    if len(words) != wanted:
        raise UsageError(
            f"trace {action}",
            Text(f"{len(words)} runs", f"{len(words)} 个运行"),
            Text(f"{wanted} run(s)", f"{wanted} 个运行"),
            Text("pass LOG_DIR/OP_NAME", "请传入 LOG_DIR/OP_NAME"),
        )
    from torchstone.trace.run import load

    runs = [load(Path(word), task) for word in words]
    gc.freeze()  # records of a large run are not looked through for cycles again and again
    return runs


def _show(options: ShowOptions, common: CommonOptions) -> int:
    from torchstone.trace.view import report_of

    (run,) = _load("show", options.words, options.task)
    show(report_of(run, options.step or None), common)
    return 0


def _diff(options: DiffOptions, common: CommonOptions) -> int:
    from torchstone.trace.compare import compare

    report = compare(*_load("diff", options.words, options.task, 2))
    show(report, common)
    return 1 if report.measures[0].value else 0


def _export(options: ExportOptions, common: CommonOptions) -> int:
    from torchstone.trace.export import export

    (run,) = _load("export", options.words, options.task)
    put(export(run, options.to), common)
    return 0


def _replay(options: ReplayOptions, common: CommonOptions) -> int:
    """Tools run again on recorded answers; exit 1 when anything comes out otherwise."""
    from torchstone.trace.replay import replay, settings_of

    (run,) = _load("replay", options.words, options.task)
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


def _fork(run: Run, options: ReplayOptions, common: CommonOptions) -> int:
    """The record up to a step, then a live model; the exit code is that of the new run."""
    from torchstone.trace.connect import connect
    from torchstone.trace.replay import fork, last_step_to_fork, settings_of
    from torchstone.trace.view import no_step

    if not options.from_step or not options.log_dir:
        raise UsageError(
            "trace replay",
            Text("no --log-dir", "缺少 --log-dir") if options.from_step else Text("a model", "一个模型"),
            Text("--from-step STEP, --model NAME and --log-dir DIR",
                 "--from-step 步骤、--model 名称和 --log-dir 目录"),
            Text("leave all three out to replay without a model", "无模型重放时三者都不要写"),
        )  # fmt: skip
    last = last_step_to_fork(run)
    if not 1 <= options.from_step <= last:
        raise no_step("trace replay: --from-step", options.from_step, last)
    usual = ReplayOptions()
    check_count("trace replay: --max-tokens", options.max_tokens, usual.max_tokens)
    check_seconds("trace replay: --max-seconds", options.max_seconds, usual.max_seconds)
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
    from torchstone.kernels.generation.generate import again
    from torchstone.kernels.verifier import verify

    judged = functools.partial(verify, without_words=True)  # as when the run was recorded
    return lambda model: again(judged, model)


def _empty(run: Run, options: ReplayOptions) -> Path:
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


SUBCOMMANDS = {
    "show": Subcommand(
        "trace show", Text("a recorded run, step by step", "逐步查看一次运行"), ShowOptions, _show
    ),
    "diff": Subcommand(
        "trace diff", Text("where two runs differ", "两次运行的不同之处"), DiffOptions, _diff
    ),
    "export": Subcommand(
        "trace export", Text("a run for other tools", "导出到其他工具"), ExportOptions, _export
    ),
    "replay": Subcommand(
        "trace replay",
        Text(
            "do a run again without a model, or from a step on with another",
            "无模型重放，或从某步起换用其他模型",
        ),
        ReplayOptions,
        _replay,
    ),
}
