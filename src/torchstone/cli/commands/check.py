"""`torchstone check PATHS`: static rules, like a linter."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchstone.cli.common import CommonOptions
from torchstone.cli.show import Progress, format_for, put, show, use_colour
from torchstone.core.finding import Severity
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions
from torchstone.render.style import printable

if TYPE_CHECKING:
    from torchstone.lint import fixer

HELP = Text(
    en="static rules: precision, performance, distributed, correctness; with fixes",
    zh="静态规则：精度、性能、分布式、正确性，并可自动修复",
)
OPTIONS = CheckOptions
CONFIGURABLE = True
_MOST_ROUNDS = 10


def run(options: CheckOptions, common: CommonOptions) -> int:
    stdin = sys.stdin.buffer.read() if "-" in options.paths else b""
    progress = Progress(common.lang, common.quiet)
    report = check(options, stdin, progress, may_fork=True)
    progress.end()
    if options.write_baseline:
        return _write_baseline(report, options, common)
    if options.diff:
        return _show_diff(report, options, common, stdin)
    if options.fix:
        report = _fix(report, options, common, stdin)
    show(_as_shown(report, options, common), common)
    return exit_code(report, options.fail_on)


def _as_shown(report: Report, options: CheckOptions, common: CommonOptions) -> Report:
    """On a terminal LOW findings are a number, unless they were asked for; kept formats have all."""
    asked = options.low or options.fail_on == "low" or options.select or options.show
    if asked or format_for(report, common) not in ("text", "concise"):
        return report
    shown = tuple(item for item in report.findings if item.severity is not Severity.LOW)
    hidden = Measure(
        "low_hidden", len(report.findings) - len(shown), "findings",
        Text("shown with --low", "用 --low 显示"), Text("LOW findings not shown", "未显示的 LOW 级问题"),
    )  # fmt: skip
    return replace(report, findings=shown, measures=(*report.measures, hidden))


def exit_code(report: Report, fail_on: str) -> int:
    if report.failed:
        return 3
    if fail_on == "never":
        return 0
    return 1 if report.at_least(Severity(fail_on.upper())) else 0


def _say(common: CommonOptions, en: str, zh: str) -> None:
    if not common.quiet:
        print(zh if common.lang == "zh" else en, file=sys.stderr)


def _write_baseline(report: Report, options: CheckOptions, common: CommonOptions) -> int:
    from torchstone.lint import baseline

    baseline.write(report.findings, Path(options.write_baseline))
    count = len(report.findings)
    noun = "finding" if count == 1 else "findings"
    _say(
        common,
        f"{count} {noun} recorded; next: torchstone check --baseline {options.write_baseline}",
        f"已记录 {count} 个问题；下一步：torchstone check --baseline {options.write_baseline}",
    )
    return 3 if report.failed else 0


def _show_diff(report: Report, options: CheckOptions, common: CommonOptions, stdin: bytes) -> int:
    made, _ = _fixed(report, options, stdin)
    colour = not common.output and use_colour(common.colour)
    put("".join(_painted(change.diff(), colour) for change in made), common)
    fixed = sum(len(change.fixed) for change in made)
    total = len(report.findings)
    _say(
        common,
        f"{fixed} fixes for {total} findings would change {len(made)} files",
        f"针对 {total} 个问题的 {fixed} 处修复将改动 {len(made)} 个文件",
    )
    return 3 if report.failed else 1 if made else 0


def _painted(diff: str, colour: bool) -> str:
    if not sys.stdout.isatty():
        return diff  # a file or a pipe gets it byte for byte: it may be applied as a patch
    diff = "".join(printable(row.rstrip("\n")) + "\n" for row in diff.splitlines(keepends=True))
    if not colour:
        return diff
    codes = {"+": "32", "-": "31", "@": "36"}
    rows = []
    for row in diff.splitlines(keepends=True):
        code = "1" if row.startswith(("+++", "---")) else codes.get(row[:1])
        rows.append(f"\x1b[{code}m{row.rstrip()}\x1b[0m\n" if code else row)
    return "".join(rows)


def _fix(report: Report, options: CheckOptions, common: CommonOptions, stdin: bytes) -> Report:
    from torchstone.lint import fixer

    made, after = _fixed(report, options, stdin)
    for change in made:
        fixer.write(change)
    fixed = sum(len(change.fixed) for change in made)
    _say(
        common,
        f"fixed {fixed} findings in {len(made)} files",
        f"已在 {len(made)} 个文件中修复 {fixed} 个问题",
    )
    return after


def _fixed(
    report: Report, options: CheckOptions, stdin: bytes
) -> tuple[list[fixer.Change], Report]:
    """Fix until nothing is left that can be fixed (some only show after others); nothing is
    written. The changes, and the report on what they leave."""
    from torchstone.lint import fixer

    changes: dict[str, fixer.Change] = {}
    texts: dict[str, bytes] = {}
    again = replace(options, no_cache=True)
    for _ in range(_MOST_ROUNDS):
        found = [item for item in report.findings if item.path != options.stdin_name]
        made = fixer.changes(found, options.unsafe_fixes, texts)
        if not made:
            break
        for change in made:
            first = changes.get(change.path)
            changes[change.path] = fixer.joined(first, change) if first else change
            texts[change.path] = change.after.encode(change.encoding)
        report = check(again, stdin, instead=texts, may_fork=True)
    return list(changes.values()), report
