"""`torchstone watch RUN`: what a watched run recorded, live or after; `watch diff A B`."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import show
from torchstone.core.errors import UsageError
from torchstone.core.options import option
from torchstone.core.text import Text

HELP = Text(
    en="what a watched training run recorded: live, after, under other thresholds, or beside another",
    zh="查看被监控的训练：实时、事后、其他阈值下，或与另一次运行对比",
)
FORMATS = ("text", "json", "markdown", "html", "agent")


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Which run, and what to ask of it."""

    words: tuple[str, ...] = option(
        (), "RUN (the folder that the run printed; the newest by default), or diff A B",
        "RUN（运行开始时打印的文件夹；默认取最新一次），或 diff A B",
        config=False, positional=True, metavar="RUN",
    )  # fmt: skip
    follow: bool = option(
        False, "follow the run until it ends", "实时显示直到运行结束", short="-f", config=False
    )
    replay: str = option(
        "", "judge this run again, with --false-alarms", "用 --false-alarms 重新判定该运行",
        config=False, metavar="RUN",
    )  # fmt: skip
    false_alarms: float = option(
        2.0, "tolerated false alarms per 10,000 healthy steps", "每 1 万健康步可接受的误报数",
        config=False, metavar="N",
    )  # fmt: skip
    what_if: str = option(
        "", "estimate what a cast of the gradients would lose: fp16, bf16, e5m2, e4m3, fp16:2^12 …",
        "把梯度转换为该格式会损失什么：fp16、bf16、e5m2、e4m3、fp16:2^12 …",
        config=False, metavar="FORMAT",
    )  # fmt: skip


OPTIONS = WatchOptions


def run(options: WatchOptions, common: CommonOptions) -> int:
    words = options.words
    if options.replay:
        words = (*words, options.replay)
    words = words or _newest_run()
    wanted = 3 if words[:1] == ("diff",) else 1
    if len(words) != wanted:
        raise UsageError(
            "watch", " ".join(words) or "nothing",
            Text("one RUN, or diff A B", "一个 RUN，或 diff A B"),
            Text("pass the folder that the run printed: .torchstone/watch/…", "请传入运行打印的文件夹：.torchstone/watch/…"),
        )  # fmt: skip
    needs_torch("watch")
    from torchstone.watch.record.runfile import load_run

    if wanted == 3:
        from torchstone.watch.after.compare import compare_watched

        show(compare_watched(load_run(words[1]), load_run(words[2])), common)
        return 0
    if options.replay:
        from torchstone.watch.after.report import replay_report

        _check_rate(options.false_alarms)
        show(replay_report(load_run(words[0]), options.false_alarms), common)
        return 0
    if options.follow:
        return _follow(Path(words[0]), common)
    from torchstone.watch.after.report import report_of
    from torchstone.watch.after.what_if import parse_what_if

    asked = parse_what_if(options.what_if) if options.what_if else None
    report = report_of(load_run(words[0]), asked)
    show(report, common)
    return 1 if report.findings else 0


def _newest_run() -> tuple[str, ...]:
    """The run of this folder that began last: their names begin with the date."""
    runs = sorted(item for item in Path(".torchstone/watch").glob("*") if item.is_dir())
    return (str(runs[-1]),) if runs else ()


def _check_rate(rate: float) -> None:
    from torchstone.watch.settings import Settings

    Settings(false_alarms_per_10k=rate)


def _follow(place: Path, common: CommonOptions) -> int:
    """Redraw every second; Ctrl-C or the end of the run ends it."""
    from torchstone.watch.after.live import screen
    from torchstone.watch.record.runfile import load_run

    clear = "\x1b[H\x1b[J" if sys.stdout.isatty() else ""
    try:
        while True:
            found = load_run(place)
            size = shutil.get_terminal_size((100, 40)).columns
            sys.stdout.write(clear + screen(found, size, common.lang))
            sys.stdout.flush()
            if found.summary or not _alive(found.header.get("pid")):
                return 1 if found.alerts else 0
            time.sleep(1.0)
    except KeyboardInterrupt:
        return 0


def _alive(pid: object) -> bool:
    """The process that writes the run is there; on another machine it cannot be known."""
    if not isinstance(pid, int) or pid <= 0:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
