"""One line a finding, as editors and grep like it."""

from __future__ import annotations

from torchstone.core.measure import Measure
from torchstone.core.quantity import human
from torchstone.core.report import Report
from torchstone.render.order import by_file
from torchstone.render.style import SEVERITY_COLOUR, Style, printable
from torchstone.render.text import summary


def render(report: Report, style: Style) -> str:
    lines: list[str] = []
    for _, findings in by_file(report):
        for item in findings:
            level = style.paint(f"[{item.severity}]", SEVERITY_COLOUR[item.severity])
            mark = " [*]" if item.fix and item.fix.safety == "safe" else ""
            where = style.paint(printable(str(item.location)), "bold")
            lines.append(
                f"{where}: {level} {printable(f'{item.rule} {item.message(style.lang)}')}{mark}"
            )
    for gap in report.gaps:
        place = f"{gap.subject}:{gap.location.line}" if gap.location.line else gap.subject
        word = (
            style.say("[NOT CHECKED]", "[未检查]") if gap.failed else style.say("[GAP]", "[缺口]")
        )
        lines.append(f"{printable(place)}: {word} {printable(gap.reason.say(style.lang))}")
    if not report.tool.startswith("check"):
        lines += [_figure(item, style) for item in report.measures]
    if style.detail:
        lines += ["", summary(report, style)] if lines else [summary(report, style)]
    return "\n".join(lines) + "\n" if lines else ""


def _figure(item: Measure, style: Style) -> str:
    label = item.label.get(style.lang) or item.name
    value = style.words(item.how) if item.name == "note" else human(item.value, item.unit)
    return printable(f"{label}: {value}")
