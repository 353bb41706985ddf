"""Markdown, for pull requests and wikis."""

from __future__ import annotations

from torchstone.core.evidence import Diff, Snippet
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.pictures import Cell, Table
from torchstone.core.quantity import human
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.render import draw
from torchstone.render.order import by_file, counts
from torchstone.render.style import Style, printable


def render(report: Report, style: Style) -> str:
    out = [f"# torchstone {report.tool}", "", *_top(report, style), ""]
    for path, findings in by_file(report):
        out += [f"## {_plain(path or report.subject)}", ""]
        for item in findings:
            out += [*_finding(item, style), ""]
    if report.measures:
        out += _measures(report, style)
    if report.gaps:
        out += ["## " + style.say("Skipped", "已跳过"), ""]
        for gap in report.gaps:
            line = f":{gap.location.line}" if gap.location.line else ""
            out.append(
                f"- **{_plain(gap.subject)}{line}**: {_plain(gap.reason.say(style.lang))} – {_act(gap, style)}"
            )
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def _act(gap: Gap, style: Style) -> str:
    act = gap.say_close(style.lang)
    return _code(act) if gap.is_command() else _plain(act)


def _top(report: Report, style: Style) -> list[str]:
    """The answer, or how many findings there are."""
    if report.answer is None:
        return [_summary(report, style)]
    out = [f"**{_plain(style.words(report.answer.headline))}**", ""]
    out += [f"> {_plain(style.words(item))}" for item in report.answer.warnings]
    colon = style.say(": ", "：")
    pairs = [(item.label, item.value) for item in report.answer.about]
    pairs += [(item.label, item.value) for item in report.answer.tiles]
    out += [
        f"- {_plain(style.words(label))}{colon}{_plain(style.words(value))}"
        for label, value in pairs
    ]
    return [*out, *(f"- {_plain(style.words(item))}" for item in report.answer.lines)]


def _summary(report: Report, style: Style) -> str:
    found = counts(report)
    total = sum(found.values())
    if not total:
        return style.say("No findings.", "没有发现问题。")
    listed = ", ".join(f"{count} {level}" for level, count in found.items() if count)
    return style.say(f"{total} findings: {listed}.", f"共 {total} 个问题：{listed}。")


def _finding(item: Finding, style: Style) -> list[str]:
    where = item.location
    place = f"Line {where.line}" if where.line else _plain(str(where))
    place = f"Cell {where.cell}, {place}" if where.cell else place
    out = [f"### {place}: [{item.severity}] {_plain(item.message(style.lang))}", ""]
    if item.why:
        out.append(f"- {_plain(item.why.say(style.lang))}")
    if item.remedy:
        word = style.say("suggestion: ", "建议：")
        out.append(f"- {word}{_plain(item.remedy.say(style.lang))}")
    out.append(f"- {_code(item.rule)} {_plain(item.name)} · {item.confidence}")
    for evidence in item.evidence:
        if isinstance(evidence, Table):
            out += ["", *_table(evidence, style)]
        else:
            kind = "diff" if isinstance(evidence, Diff) else ""
            kind = "python" if isinstance(evidence, Snippet) else kind
            body = evidence.text if isinstance(evidence, (Snippet, Diff)) else None
            rows = body.split("\n") if body is not None else draw.text(evidence, style)
            out += ["", *_fence(rows, kind)]
    return out


def _fence(rows: list[str], kind: str) -> list[str]:
    rows = [printable(row) for row in rows]
    longest = max((row.count("`") for row in rows), default=0)
    ticks = "`" * max(3, longest + 1)
    return [f"{ticks}{kind}", *rows, ticks]


def _table(table: Table, style: Style) -> list[str]:
    head = "| " + " | ".join(_plain(style.words(name)) for name in table.columns) + " |"
    rule = "|" + "---|" * len(table.columns)
    rows = [
        "| " + " | ".join(_plain(_cell(cell, style)) for cell in row) + " |" for row in table.rows
    ]
    return [head, rule, *rows]


def _cell(cell: Cell, style: Style) -> str:
    return style.words(cell) if isinstance(cell, Text) else str(cell)


def _measures(report: Report, style: Style) -> list[str]:
    out = ["## " + style.say("Measures", "度量"), ""]
    names = style.say("measure,value,how obtained", "度量,数值,获得方式").split(",")
    out += ["| " + " | ".join(names) + " |", "|---|--:|---|"]
    for item in report.measures:
        label = _plain(item.label.get(style.lang) or item.name)
        out.append(
            f"| {label} | {_plain(human(item.value, item.unit))} | {_plain(style.words(item.how))} |"
        )
    out.append("")
    for item in report.measures:
        for evidence in item.evidence:
            out += [*_fence(draw.text(evidence, style), ""), ""]
    return out


_SPECIAL = {"<": "&lt;", ">": "&gt;", **{char: "\\" + char for char in "\\|*_[]"}}


def _plain(text: str) -> str:
    """Text that is shown as it is: no markup, link or table cell of its own."""
    return "".join(_SPECIAL.get(char, char) for char in printable(" ".join(text.split())))


def _code(text: str) -> str:
    text = printable(text)
    ticks = "``" if "`" in text else "`"
    return f"{ticks}{text}{ticks}"
