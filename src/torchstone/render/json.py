"""The report as JSON, by the published schema."""

from __future__ import annotations

from torchstone.core.report import Report
from torchstone.render.style import Style


def render(report: Report, style: Style) -> str:
    return report.to_json() + "\n"
