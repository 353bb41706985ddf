"""One offline HTML page: light and dark, two languages, filter, search, keyboard, printable."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from pathlib import Path

from torchstone._version import __version__
from torchstone.core import quantity
from torchstone.core.finding import Finding, Severity
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.render import draw
from torchstone.render.draw import _scale
from torchstone.render.markup import escape, markup
from torchstone.render.order import by_file, counts, worst_first
from torchstone.render.style import Style
from torchstone.render.words import CONFIDENCE, FIX_BADGE, LEVELS

MAX_BYTES = 4_500_000
_BARS = 10
_PAGE = Path(__file__).parent / "page"


def render(report: Report, style: Style) -> str:
    kept, folded = _within_budget(report, style)
    main = "".join(
        _file(path, [(item, kept[id(item)]) for item in group if id(item) in kept], report)
        for path, group in by_file(report)
        if any(id(item) in kept for item in group)
    )
    body = "".join(
        (
            _header(report),
            _controls(report) if report.findings else _switches(),
            _charts(report) if report.findings else "",
            f'<main id="findings">{main or _nothing(report)}{_folded(folded)}</main>',
            _measures(report.measures, style),
            _gaps(report.gaps),
            _footer(report),
        )
    )
    css, script = ((_PAGE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    lang = "zh" if style.lang == "zh" else "en"
    return (
        f'<!doctype html>\n<html lang="{lang}" data-lang="{lang}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        # nothing may be fetched, whatever analysed code managed to put into a page
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'unsafe-inline'; script-src 'sha256-{_digest(script)}'; img-src data:\">"
        f"<title>torchstone {escape(report.tool)} – {escape(report.subject)}</title>"
        f"<style>{css}</style></head><body>{body}<script>{script}</script></body></html>\n"
    )


def _digest(script: str) -> str:
    """Only the page's own script may run, whatever text got into the page."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _within_budget(report: Report, style: Style) -> tuple[dict[int, str], int]:
    """The worst findings that fit into the page's size, and how many do not."""
    kept: dict[int, str] = {}
    size = 0
    for item in worst_first(report.findings):
        info = report.rules.get(item.rule)
        entry = _finding(item, info.group if info else item.tool, style)
        size += len(entry.encode("utf-8", "replace"))
        if size > MAX_BYTES:
            break
        kept[id(item)] = entry
    return kept, len(report.findings) - len(kept)


def _say(en: str, zh: str) -> str:
    return markup(Text(en, zh))


def _header(report: Report) -> str:
    chips = "".join(
        f'<span class="chip {level.lower()}">{markup(LEVELS[level])} <b>{count}</b></span>'
        for level, count in counts(report).items()
    )
    gaps = len(report.gaps)
    gap_chip = f'<a class="chip gap" href="#gaps">{_say("not checked", "未检查")} <b>{gaps}</b></a>'
    return (
        f'<header><h1><svg viewBox="0 0 24 24" class="logo" aria-hidden="true"><path d="M12 2l8 6-3 13H7L4 8z"/>'
        f"</svg>torchstone <small>{escape(report.tool)}</small></h1>"
        f'<p class="subject">{escape(report.subject)}</p><p>{chips}{gap_chip if gaps else ""}</p></header>'
    )


_SWITCHES = (
    '<button id="lang" type="button" title="l">中 / en</button>'
    '<button id="theme" type="button" title="t">◐</button>'
)


def _switches() -> str:
    """What a page without findings still needs."""
    return f'<nav class="controls"><span class="spring"></span>{_SWITCHES}</nav>'


def _controls(report: Report) -> str:
    levels = "".join(
        f'<label class="{level.lower()}"><input type="checkbox" name="level" value="{level}" checked>'
        f"{markup(LEVELS[level])}</label>"
        for level in Severity
    )
    groups = sorted({info.group for info in report.rules.values()})
    options = "".join(f"<option>{escape(group)}</option>" for group in groups)
    return (
        '<nav class="controls" aria-label="filters">'
        '<input type="search" id="search" placeholder="search · 搜索 ( / )" aria-label="search" autocomplete="off">'
        f'{levels}<select id="group" aria-label="group"><option value="">all · 全部</option>{options}</select>'
        f'<label><input type="checkbox" id="fixable">{_say("with a fix", "可修复")}</label>'
        f'<output id="shown"></output><span class="spring"></span>'
        '<button id="all" type="button" title="e">±</button>'
        f"{_SWITCHES}"
        '<button id="help" type="button" title="?">?</button></nav>'
        f'<dialog id="keys"><h2>{_say("Keys", "快捷键")}</h2><dl>'
        f"<dt>j k</dt><dd>{_say('next, previous finding', '下一个、上一个问题')}</dd>"
        f"<dt>Enter o</dt><dd>{_say('open or close it', '展开或收起')}</dd>"
        f"<dt>/</dt><dd>{_say('search', '搜索')}</dd>"
        f"<dt>1 2 3</dt><dd>{_say('high, medium, low on or off', '切换 高、中、低')}</dd>"
        f"<dt>e</dt><dd>{_say('open or close all', '全部展开或收起')}</dd>"
        f"<dt>t l</dt><dd>{_say('theme, language', '主题、语言')}</dd>"
        f'</dl><form method="dialog"><button>{_say("close", "关闭")}</button></form></dialog>'
    )


def _charts(report: Report) -> str:
    by_rule = Counter(f"{item.rule} {item.name}" for item in report.findings)
    by_path = Counter(item.path for item in report.findings if item.path)
    charts = _bars(_say("by rule", "按规则"), by_rule) + _bars(_say("by file", "按文件"), by_path)
    return f'<section class="charts">{charts}</section>' if charts else ""


def _bars(title: str, rows: Counter[str]) -> str:
    """The ten largest; nothing where all are alike, for such a picture says nothing."""
    most = max(rows.values(), default=0)
    if most <= 1:
        return ""
    lines = "".join(
        f'<button type="button" class="bar" data-search="{escape(name.split()[0] if name else "", quote=True)}">'
        f'<span class="name" title="{escape(name, quote=True)}"><bdi>{escape(name)}</bdi></span>'
        f'<span class="track"><i style="width:{count / most:.1%}"></i></span><b>{count}</b></button>'
        for name, count in rows.most_common(_BARS)
    )
    more = len(rows) - _BARS
    rest = f'<p class="meta">{_say(f"and {more} more", f"另有 {more} 项")}</p>' if more > 0 else ""
    return f"<div><h2>{title}</h2>{lines}{rest}</div>"


def _file(path: str, rows: list[tuple[Finding, str]], report: Report) -> str:
    title = escape(path or report.subject or report.tool)
    return (
        f'<section class="file"><h2>{title} <small>{len(rows)}</small></h2>'
        f"{''.join(entry for _, entry in rows)}</section>"
    )


def _finding(item: Finding, group: str, style: Style) -> str:
    level = item.severity.lower()
    where = item.location
    place = f"Line {where.line}" if where.line else str(where)
    place = f"Cell {where.cell}, {place}" if where.cell else place
    fix = item.fix if item.fix and item.fix.edits else None
    words = " ".join(
        (item.rule, item.name, item.path, where.scope, item.message("en"), item.message("zh"))
    )
    badge = (
        f'<span class="badge {fix.safety}">{markup(FIX_BADGE[fix.safety])}</span>' if fix else ""
    )
    reason = f"<li>{markup(item.why)}</li>" if item.why else ""
    remedy = (
        f'<li class="do"><b>{_say("do: ", "建议：")}</b>{markup(item.remedy)}</li>'
        if item.remedy
        else ""
    )
    return (
        f'<details class="finding {level}" data-level="{item.severity}" data-group="{escape(group, quote=True)}" '
        f'data-fix="{int(fix is not None)}" data-words="{escape(words.lower(), quote=True)}" id="f-{escape(item.fingerprint, quote=True)}">'
        f'<summary><span class="level {level}">{markup(LEVELS[item.severity])}</span>'
        f'<span class="place">{escape(place)}</span><span class="what">{markup(item.what)}</span>'
        f'{badge}<span class="rule">{escape(item.rule)} {escape(item.name)}</span></summary>'
        f'<div class="body"><ul>{reason}{remedy}</ul>{_evidence(item.evidence, style)}'
        f'<p class="meta">{_meta(item)}</p></div></details>'
    )


def _meta(item: Finding) -> str:
    """How sure it is, where it is, and what to type about it."""
    parts = [markup(CONFIDENCE[item.confidence]), escape(item.location.scope)]
    if item.tool in ("check", "watch"):
        parts.append(f"<code>torchstone explain {escape(item.rule)}</code>")
    if item.tool == "check":
        parts.append(f"<code># torchstone: ignore[{escape(item.name)}]</code>")
    return " · ".join(part for part in parts if part)


def _evidence(rows: tuple[Evidence, ...], style: Style) -> str:
    return "".join(draw.html(evidence, style) for evidence in rows)


def _nothing(report: Report) -> str:
    return f'<p class="clean">{_say("No findings.", "没有发现问题。")}</p>'


def _folded(count: int) -> str:
    if not count:
        return ""
    en = f"{count} findings are folded to keep this page under 5 MB: torchstone check --format json shows all"
    zh = f"为使页面小于 5 MB，折叠了 {count} 个问题：torchstone check --format json 可查看全部"
    return f'<p class="folded">{_say(en, zh)}</p>'


def _measures(measures: tuple[Measure, ...], style: Style) -> str:
    if not measures:
        return ""
    rows = "".join(
        f"<tr><td>{markup(item.label) if item.label.en else escape(item.name)}</td>"
        f'<td class="n" title="{escape(_scale.number(item.value))}">'
        f"{'' if item.name == 'note' else escape(quantity.human(item.value, item.unit))}</td>"
        f"<td>{markup(item.how)}</td></tr>"
        for item in measures
    )
    pictures = "".join(_evidence(item.evidence, style) for item in measures)
    head = "".join(
        f"<th>{_say(en, zh)}</th>"
        for en, zh in (
            ("measure", "度量"),
            ("value", "数值"),
            ("how obtained", "获得方式"),
        )
    )
    return (
        f'<section class="measures"><h2>{_say("Measures", "度量")}</h2>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"{pictures}</section>"
    )


def _gaps(gaps: tuple[Gap, ...]) -> str:
    if not gaps:
        return ""
    rows = "".join(
        f"<li><b>{escape(gap.subject)}{f':{gap.location.line}' if gap.location.line else ''}</b> "
        f"{markup(gap.reason)} <code>{escape(gap.close)}</code></li>"
        for gap in gaps[:500]
    )
    return f'<section id="gaps"><h2>{_say("Not checked", "未检查")}</h2><ul>{rows}</ul></section>'


def _footer(report: Report) -> str:
    facts = " · ".join(
        f"{escape(key)} {escape(value)}" for key, value in report.environment.items()
    )
    own = "" if "torchstone" in report.environment else f"torchstone {__version__} · "
    return f"<footer>{own}{facts}</footer>"
