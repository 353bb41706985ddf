"""For agents: the findings that matter most within a token budget, with ids to ask for more."""

from __future__ import annotations

from dataclasses import replace

from torchstone.core.finding import Finding
from torchstone.core.pictures import Table
from torchstone.core.quantity import human
from torchstone.core.report import Report
from torchstone.render import draw
from torchstone.render.order import counts, worst_first
from torchstone.render.style import Style, printable
from torchstone.render.text import answer_lines


def tokens(text: str) -> int:
    """An upper estimate: 3.5 ASCII characters a token, one token a Chinese character."""
    narrow = sum(1 for char in text if char.isascii())
    return int(narrow / 3.5) + (len(text) - narrow) + 1


def render(report: Report, style: Style) -> str:
    found = counts(report)
    total = sum(found.values())
    listed = " ".join(f"{level}={count}" for level, count in found.items() if count)
    head = f"torchstone {report.tool}: {total} findings {listed}".rstrip()
    gaps = [f"SKIPPED {gap.subject}: {gap.reason.say(style.lang)}" for gap in report.gaps[:5]]
    if len(report.gaps) > 5:
        gaps.append(f"SKIPPED {len(report.gaps) - 5} more")
    lines = [head, *_answer(report, style), *map(printable, gaps)]
    left = style.budget - tokens("\n".join(lines)) - 60
    shown = 0
    for item in worst_first(report.findings):
        entry = _entry(item, style)
        if tokens(entry) > left:
            entry = _short(item, style)
            if tokens(entry) > left:
                break
        lines.append(entry)
        left -= tokens(entry)
        shown += 1
    if shown < total:
        lines.append(
            f"+{total - shown} more: raise --budget, or narrow with --select RULE / a path"
        )
    lines += _measures(report, left, style)
    if total and report.tool.startswith("check"):
        lines.append(
            "expand: torchstone check PATH --show ID -v; torchstone explain RULE; fix: --diff, --fix"
        )
    return "\n".join(lines) + "\n"


def _answer(report: Report, style: Style) -> list[str]:
    if report.answer is None:
        return []
    plain = replace(style, colour=False, width=0, detail=1)
    return [*answer_lines(report.answer, plain), *(f"next: {line}" for line in report.answer.next)]


def _measures(report: Report, left: int, style: Style) -> list[str]:
    """Figures and their first table, as far as they go; a linter's are of no use to an agent."""
    lines: list[str] = []
    if report.tool.startswith("check"):
        return lines
    for item in report.measures:
        label = item.label.get(style.lang) or item.name
        if item.name == "note":
            rows = [f"{label}: {style.words(item.how)}"]
        else:
            rows = [f"{item.name}: {human(item.value, item.unit)}"]
        rows += [
            row
            for one in item.evidence[:1]
            if isinstance(one, Table)
            for row in draw.text(one, style)
        ]
        for row in map(printable, rows):
            left -= tokens(row)
            if left < 0:
                return [*lines, "more: raise --budget, or --format json"]
            lines.append(row)
    return lines


def _short(item: Finding, style: Style) -> str:
    return f"#{item.fingerprint[:8]} {item.severity} {printable(f'{item.rule} {item.location}')}"


def _entry(item: Finding, style: Style) -> str:
    fix = f" fix={item.fix.safety}" if item.fix and item.fix.edits else ""
    what = printable(item.message(style.lang))
    todo = f"\n  do: {printable(item.remedy.say(style.lang))}" if item.remedy else ""
    return f"{_short(item, style)} {item.confidence}{fix}: {what}{todo}"
