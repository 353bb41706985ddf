"""One line a finding, as editors and grep like it."""

from __future__ import annotations

from torchstone.core.measure import Measure
from torchstone.core.quantity import human
from torchstone.core.report import Report
from torchstone.render.order import by_file
from torchstone.render.style import SEVERITY_COLOUR, Style, printable
from torchstone.render.text import answer_lines, gap_line, summary


def render(report: Report, style: Style) -> str:
    lines: list[str] = answer_lines(report.answer, style) if report.answer else []
    for _, findings in by_file(report):
        for item in findings:
            level = style.paint(f"[{item.severity}]", SEVERITY_COLOUR[item.severity])
            mark = " [*]" if item.fix and item.fix.safety == "safe" else ""
            where = style.paint(printable(str(item.location)), "bold")
            lines.append(
                f"{where}: {level} {printable(f'{item.rule} {item.message(style.lang)}')}{mark}"
            )
    lines += [gap_line(gap, style) for gap in report.gaps]
    if not report.tool.startswith("check"):
        lines += [_figure(item, style) for item in report.measures]
    if any(item.fix and item.fix.safety == "safe" for item in report.findings) and style.detail:
        lines.append(style.say("[*] can be fixed safely: --fix", "[*] 可安全修复：--fix"))
    if style.detail:
        lines += ["", summary(report, style)] if lines else [summary(report, style)]
    return "\n".join(lines) + "\n" if lines else ""


def _figure(item: Measure, style: Style) -> str:
    label = item.label.get(style.lang) or item.name
    value = style.words(item.how) if item.name == "note" else human(item.value, item.unit)
    return printable(f"{label}: {value}")
