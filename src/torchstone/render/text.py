"""The full text form: `File:`, `Line 45: [HIGH] …`, `  -> reason`, `  -> what to do`."""

from __future__ import annotations

from torchstone.core import quantity
from torchstone.core.evidence import Snippet
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.render import draw
from torchstone.render.order import by_file, counts, worst_first
from torchstone.render.style import SEVERITY_COLOUR, Style, printable, wrapped
from torchstone.render.words import CONFIDENCE, FIX

_INDENT = "     "


def render(report: Report, style: Style) -> str:
    blocks: list[str] = []
    for path, findings in by_file(report):
        title = style.paint(f"File: {printable(path or report.subject or report.tool)}", "bold")
        blocks.append(title + "\n" + "\n\n".join(_finding(item, style) for item in findings))
    if style.detail:
        blocks += [_measures(report, style)] if style.detail > 1 or report.tool != "check" else []
        blocks += [_gap(gap, style) for gap in report.gaps]
        blocks.append(summary(report, style))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _finding(item: Finding, style: Style) -> str:
    colour = SEVERITY_COLOUR[item.severity]
    level = style.paint(f"[{item.severity}]", "bold", colour)
    lines = [f"{_place(item, style)}: {level} {printable(item.message(style.lang))}"]
    if item.why:
        lines.append(_arrow(item.why.say(style.lang), style))
    if item.remedy:
        word = style.say("suggestion: ", "建议：")
        lines.append(_arrow(word + item.remedy.say(style.lang), style))
    if style.detail:
        for evidence in item.evidence:
            if style.detail > 1 or isinstance(evidence, Snippet):
                lines += (_INDENT + row for row in draw.text(evidence, style))
        lines.append(_INDENT + style.paint(printable(_footer(item, style)), "dim"))
    return "\n".join(lines)


def _arrow(text: str, style: Style) -> str:
    """`  -> text`, broken at the terminal's width with the text kept in its column."""
    return "\n".join(wrapped(f"  -> {printable(text)}", style.width, "     "))


def _place(item: Finding, style: Style) -> str:
    where = item.location
    if not where.line:
        return printable(str(where)) or item.tool
    cell = style.say(f"Cell {where.cell}, ", f"Cell {where.cell}, ") if where.cell else ""
    return f"{cell}Line {where.line}"


def _footer(item: Finding, style: Style) -> str:
    parts = [f"{item.rule} {item.name}"]
    parts.append(style.words(CONFIDENCE[item.confidence]))
    if item.fix and item.fix.edits:
        parts.append(style.words(FIX[item.fix.safety]))
    if item.gain:
        parts.append(f"{item.gain.value:g} {item.gain.unit} ({style.words(item.gain.how)})")
    return " · ".join(parts)


def _gap(gap: Gap, style: Style) -> str:
    word = style.say("NOT CHECKED" if gap.failed else "GAP", "未检查" if gap.failed else "缺口")
    line = f":{gap.location.line}" if gap.location.line else ""
    head = f"{style.paint(f'[{word}]', 'magenta')} {printable(gap.subject)}{line}"
    close = style.say("to close it: ", "补上的办法：")
    return (
        f"{head}\n  -> {printable(gap.reason.say(style.lang))}\n  -> {close}{printable(gap.close)}"
    )


def _measures(report: Report, style: Style) -> str:
    rows = []
    colon = style.say(": ", "：")
    for item in report.measures:
        spread = ""
        if item.spread is not None:  # scaled as the value is
            known = quantity.scales(item.unit)
            spread = (
                f" ± {quantity.human(item.spread, item.unit) if known else f'{item.spread:.3g}'}"
            )
        label = item.label.get(style.lang) or item.name
        if item.name == "note":  # words, not a number
            rows.append(printable(f"{label}{colon}{style.words(item.how)}"))
            continue
        value = quantity.human(item.value, item.unit)
        rows.append(printable(f"{label}{colon}{value}{spread} ({style.words(item.how)})"))
        shown = item.evidence if style.detail > 1 else item.evidence[:1]
        for evidence in shown:
            rows += ("  " + row for row in draw.text(evidence, style))
    if style.detail == 1 and any(len(item.evidence) > 1 for item in report.measures):
        rows.append(
            style.say(
                "More tables and pictures: -v, --format html", "更多表格与图：-v、--format html"
            )
        )
    return "\n".join(rows)


def summary(report: Report, style: Style) -> str:
    """How many findings there are, of what kind, and the next command."""
    found = counts(report)
    total = sum(found.values())
    gaps = len(report.gaps)
    tail = style.say(f", {gaps} not checked", f"，{gaps} 处未检查") if gaps else ""
    stop = style.say(".", "。")
    if not total:
        nothing = style.say("No findings", "没有发现问题") + _extent(report, style)
        return style.paint(nothing, "green") + tail + stop
    separator = style.say(", ", "，")
    shown = separator.join(
        style.paint(f"{n} {level}", SEVERITY_COLOUR[level]) for level, n in found.items() if n
    )
    noun = "finding" if total == 1 else "findings"
    head = style.say(f"{total} {noun} ({shown})", f"{total} 个问题（{shown}）")
    lines = [f"{head}{tail}{stop}", *_next(report, style)]
    return "\n".join(lines)


def _extent(report: Report, style: Style) -> str:
    """What was looked at, when nothing was found: "clean" means little without it."""
    read = {item.name: int(item.value) for item in report.measures if item.tool == report.tool}
    if not {"files", "lines", "rules"} <= read.keys():
        return ""
    files, lines, rules = read["files"], read["lines"], read["rules"]
    nouns = ("file" if files == 1 else "files", "rule" if rules == 1 else "rules")
    return style.say(
        f" in {files} {nouns[0]} ({lines:,} lines, {rules} {nouns[1]})",
        f"（{files} 个文件，{lines:,} 行，{rules} 条规则）",
    )


def _next(report: Report, style: Style) -> list[str]:
    """Commands that say more or mend it, for what is there."""
    own = [item for item in worst_first(report.findings) if item.rule in report.rules]
    if not report.tool.startswith("check") or not own:
        return []
    lines: list[str] = []
    fixable = sum(1 for item in report.findings if item.fix and item.fix.safety == "safe")
    if fixable:
        command = f"torchstone check --diff {printable(report.subject)}".rstrip()
        lines.append(
            style.say(
                f"{fixable} can be fixed safely: {command} shows how, --fix does it.",
                f"其中 {fixable} 个可安全修复：{command} 查看，--fix 应用。",
            )
        )
    return [*lines, style.say("Why: ", "原因：") + f"torchstone explain {own[0].rule}"]
