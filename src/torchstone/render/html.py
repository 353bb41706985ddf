"""One offline HTML page: the answer first, then findings, figures and what was not looked at."""

from __future__ import annotations

import base64
import hashlib

from torchstone.core.report import Report
from torchstone.render.markup import escape
from torchstone.render.page.answer import answer_section
from torchstone.render.page.assets import script, style_sheet
from torchstone.render.page.details import detail_sections, footer, skipped_section
from torchstone.render.page.findings import findings_section
from torchstone.render.page.header import header, keys_dialog
from torchstone.render.style import Style


def render(report: Report, style: Style) -> str:
    body = "".join(
        (
            header(report),
            answer_section(report, style),
            findings_section(report, style),
            detail_sections(report, style),
            skipped_section(report.gaps),
            footer(report),
            keys_dialog(bool(report.findings)),
        )
    )
    code = script()
    lang = "zh" if style.lang == "zh" else "en"
    return (
        f'<!doctype html>\n<html lang="{lang}" data-lang="{lang}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        # nothing may be fetched, whatever analysed code managed to put into a page
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'unsafe-inline'; script-src 'sha256-{_digest(code)}'; img-src data:\">"
        f"<title>torchstone {escape(report.tool)} – {escape(report.subject)}</title>"
        f"<style>{style_sheet()}</style></head><body>{body}<script>{code}</script></body></html>\n"
    )


def _digest(code: str) -> str:
    """Only the page's own script may run, whatever text got into the page."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
