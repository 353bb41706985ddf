"""`torchstone review PATH`, `review --prove RUN ID`, `review verify RUN`, `review mark ID WORD`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.cli.command import Subcommand
from torchstone.cli.common import ENDINGS, CommonOptions
from torchstone.cli.show import Progress, show
from torchstone.conductor.options import ReviewOptions
from torchstone.core.errors import UsageError
from torchstone.core.options import option
from torchstone.core.text import Text

HELP = Text(
    en="the main job: plan, run every tool, interpret, design fixes, guide, verify; RUNS the project in a sandbox",
    zh="核心功能：规划、运行全部工具、解读、设计修复、指导、验证；在隔离环境中运行项目",
)
OPTIONS = ReviewOptions
READS_CONFIG = False
"""What the reviewed project says may not change what is looked at."""
FORMATS = ("text", "json", "markdown", "html", "sarif", "agent", "github", "concise")


def run(options: ReviewOptions, common: CommonOptions) -> int:
    from torchstone.conductor.review import run_review

    if options.prove:
        return _prove(options, common)
    progress = Progress(common.lang, common.quiet, Text("reviewing", "评审中"))
    if Path(common.output).suffix in ENDINGS:
        raise UsageError(
            "review", f"-o {common.output}",
            Text("a folder: a review writes its page and much besides", "文件夹：评审会写入页面和其他多个文件"),
            Text("give a folder; its report.html is the page", "请给出文件夹；其中的 report.html 即页面"),
        )  # fmt: skip
    try:
        report, folder = run_review(options, common.output, common.lang, progress, common.command)
    finally:
        progress.end()
    show(report, replace(common, output=""))
    if not common.quiet:
        words = "报告" if common.lang == "zh" else "report"
        print(f"{words}: {folder.path.as_posix()}/report.html", file=sys.stderr)
    return 3 if report.failed else 1 if report.findings else 0


def _prove(options: ReviewOptions, common: CommonOptions) -> int:
    from torchstone.conductor.proving import prove

    report = prove(options.prove, options.path)
    show(report, common)
    return 3 if report.failed else 1 if report.findings else 0


@dataclass(frozen=True, slots=True)
class VerifyRunOptions:
    """Which review is checked again."""

    run: str = option(
        "", "the folder of the review; the newest by default", "评审文件夹；默认取最新一次",
        positional=True, config=False, metavar="RUN",
    )  # fmt: skip


def _verify(options: VerifyRunOptions, common: CommonOptions) -> int:
    from torchstone.conductor.recheck import verify_run

    report = verify_run(options.run)
    show(report, common)
    return 3 if report.failed else 1 if report.findings else 0


@dataclass(frozen=True, slots=True)
class MarkOptions:
    """What is said of a problem."""

    words: tuple[str, ...] = option(
        (), "the id of a problem and accept, reject or false-positive",
        "问题编号，以及 accept、reject 或 false-positive",
        positional=True, config=False, metavar="ID WORD",
    )  # fmt: skip
    run: str = option(
        "", "the folder of the review; the newest by default", "评审文件夹；默认取最新一次",
        config=False, metavar="RUN",
    )  # fmt: skip


def _mark(options: MarkOptions, common: CommonOptions) -> int:
    from torchstone.conductor.recheck import mark_problem

    if len(options.words) != 2:
        raise UsageError(
            "review mark", f"{len(options.words)} words",
            Text("an id and accept, reject or false-positive", "编号与 accept、reject 或 false-positive"),
            Text("for example: torchstone review mark p-1a2b3c4d reject",
                 "例如：torchstone review mark p-1a2b3c4d reject"),
        )  # fmt: skip
    said = mark_problem(options.run, *options.words)
    if not common.quiet:
        print(said.get(common.lang))
    return 0


SUBCOMMANDS = {
    "verify": Subcommand(
        "review verify", Text("look again at a tree that was changed by hand", "重新检查手动修改后的代码"),
        VerifyRunOptions, _verify,
    ),
    "mark": Subcommand(
        "review mark", Text("accept, reject or call a problem a false positive", "接受、拒绝问题或标记为误报"),
        MarkOptions, _mark,
    ),
}  # fmt: skip
