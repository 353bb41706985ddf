"""Below the answer: every figure with how it was obtained and its pictures; what was skipped."""

from __future__ import annotations

from torchstone._version import __version__
from torchstone.core import quantity
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.render.draw import _scale
from torchstone.render.markup import escape, markup
from torchstone.render.page.answer import pictures
from torchstone.render.page.header import say
from torchstone.render.style import Style

_MOST_GAPS = 500


def detail_sections(report: Report, style: Style) -> str:
    """Figures with pictures, each in a fold of its own under an answer; then all figures."""
    if not report.measures:
        return ""
    first = set(map(id, report.answer.pictures)) if report.answer else set()
    parts: list[str] = []
    for item in report.measures:
        rest = tuple(one for one in item.evidence if id(one) not in first)
        if rest:
            shown = pictures(rest, style)
            parts.append(_fold(item, shown) if report.answer else shown)
    table = _table(report.measures)
    title = say("All figures", "全部数值")
    if report.answer:
        figures = f'<details class="section"><summary>{title}</summary>{table}</details>'
    else:
        figures = f"<h2>{title}</h2>{table}"
    inner = "".join(parts) + figures if report.answer else figures + "".join(parts)
    return f'<section class="measures">{inner}</section>'


def _fold(item: Measure, shown: str) -> str:
    value = "" if item.name == "note" else quantity.human(item.value, item.unit)
    return (
        f'<details class="section"><summary>{_label(item)} <b>{escape(value)}</b></summary>'
        f"{shown}</details>"
    )


def _label(item: Measure) -> str:
    return markup(item.label) if item.label.en else escape(item.name)


def _table(measures: tuple[Measure, ...]) -> str:
    rows = "".join(
        f"<tr><td>{_label(item)}</td>"
        + (
            f'<td class="n" data-value="{item.value}" title="{escape(_scale.number(item.value))}">'
            f"{escape(quantity.human(item.value, item.unit))}</td>"
            if item.name != "note"
            else "<td></td>"
        )
        + f"<td>{markup(item.how)}</td></tr>"
        for item in measures
    )
    names = (("figure", "数值名称"), ("value", "数值"), ("how obtained", "获得方式"))
    head = "".join(f"<th>{say(en, zh)}</th>" for en, zh in names)
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def skipped_section(gaps: tuple[Gap, ...]) -> str:
    """What was not looked at, why, and what to run."""
    if not gaps:
        return ""
    rows = "".join(
        f"<li><b>{escape(gap.subject)}{f':{gap.location.line}' if gap.location.line else ''}</b> "
        f"{markup(gap.reason)}{_close(gap)}</li>"
        for gap in gaps[:_MOST_GAPS]
    )
    return f'<section id="gaps"><h2>{say("Skipped", "已跳过")}</h2><ul>{rows}</ul></section>'


def _close(gap: Gap) -> str:
    if not gap.close.strip("–- "):
        return ""
    if not gap.is_command():
        return f' <span class="run">{say("To do:", "处理：")} {say(gap.close, gap.close_zh)}</span>'
    return f' <span class="run">{say("Run:", "运行：")} <code>{escape(gap.close)}</code></span>'


def footer(report: Report) -> str:
    facts = " · ".join(
        f"{escape(key)} {escape(value)}" for key, value in report.environment.items()
    )
    own = "" if "torchstone" in report.environment else f"torchstone {__version__} · "
    return f"<footer>{own}{facts}</footer>"
