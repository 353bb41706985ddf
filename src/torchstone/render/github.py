"""GitHub workflow commands: findings stand beside the changed lines of a pull request."""

from __future__ import annotations

from torchstone.core.finding import Location, Severity
from torchstone.core.report import Report
from torchstone.render.order import by_file
from torchstone.render.style import Style, printable

_LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "notice"}


def render(report: Report, style: Style) -> str:
    lines: list[str] = []
    for _, findings in by_file(report):
        for item in findings:
            where = item.location
            properties = {
                "title": f"{item.rule} {item.name}",
                "file": where.path,
            } | _lines(where)
            parts = (
                item.message(style.lang),
                item.why.say(style.lang),
                item.remedy.say(style.lang),
            )
            cell = f"cell {where.cell}: " if where.cell else ""
            lines.append(
                _command(_LEVELS[item.severity], properties, cell + "\n".join(filter(None, parts)))
            )
    for gap in report.gaps:
        place = {
            "title": "torchstone",
            "file": gap.location.path,
            "line": str(gap.location.line or 1) if gap.location.path else "",
        }
        text = f"{gap.subject}: {gap.reason.say(style.lang)} ({gap.say_close(style.lang)})"
        lines.append(_command("error" if gap.failed else "notice", place, text))
    return "".join(line + "\n" for line in lines)


def _lines(where: Location) -> dict[str, str]:
    """Nothing for what has no line, such as a tensor: GitHub would look for line 0."""
    if not where.line:
        return {}
    found = {
        "line": str(where.line),
        "endLine": str(max(where.end_line, where.line)),
        "col": str(where.column) if where.column else "",
    }
    if where.end_line == where.line:
        found["endColumn"] = str(where.end_column)
    return found


def _command(level: str, properties: dict[str, str], message: str) -> str:
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{level} {shown}::{_data(message)}"


def _data(text: str) -> str:
    rows = (printable(row) for row in text.replace("\r", "").split("\n"))
    return "%0A".join(row.replace("%", "%25") for row in rows)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
