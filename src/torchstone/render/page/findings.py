"""The findings of a report: filters, bars that follow them, and one fold for each finding."""

from __future__ import annotations

from itertools import groupby
from urllib.parse import quote

from torchstone.core.finding import Finding, Severity
from torchstone.core.report import Report
from torchstone.render import draw
from torchstone.render.markup import escape, markup
from torchstone.render.order import counts, weight, worst_first
from torchstone.render.page.header import say
from torchstone.render.style import Style
from torchstone.render.words import CONFIDENCE, FIX_BADGE, LEVELS

MAX_BYTES = 4_300_000
"""Of all findings together: with the rest of a page, and its pictures, below 5 MB."""

_FEW = 8
"""Findings below an answer that need neither filters nor bars."""


def findings_section(report: Report, style: Style) -> str:
    """All findings that fit, worst file first; that nothing was found is said by the linter only."""
    if not report.findings:
        return _nothing() if report.tool.startswith("check") else ""
    kept, left_out = _within_budget(report, style)
    if report.answer is not None and len(report.findings) <= _FEW:
        entries = "".join(entry for _, entry in kept)
        return f'<section class="problems"><h2>{say("Problems", "问题")}</h2>{entries}</section>'
    files = "".join(_file(path, entries, report) for path, entries in _by_file(kept))
    return (
        f'<section id="findings">{_chips(report)}{_controls(report)}{_bars(report)}'
        f'{files}<p id="none" class="clean" hidden>'
        f"{say('No finding matches the filters.', '没有符合筛选条件的问题。')} "
        f'<button type="button" id="clear">{say("clear filters", "清除筛选")}</button></p>'
        f"{_left_out(left_out)}</section>"
    )


def _within_budget(report: Report, style: Style) -> tuple[list[tuple[Finding, str]], int]:
    """The worst findings that fit into the page's size, and how many do not."""
    kept: list[tuple[Finding, str]] = []
    size = 0
    for item in worst_first(report.findings):
        info = report.rules.get(item.rule)
        entry = _finding(item, info.group if info else item.tool, style)
        size += len(entry.encode("utf-8", "replace"))
        if size > MAX_BYTES:
            break
        kept.append((item, entry))
    return kept, len(report.findings) - len(kept)


def _by_file(kept: list[tuple[Finding, str]]) -> list[tuple[str, list[str]]]:
    """Files with the worst findings first; within a file, by line."""
    groups = {
        path: list(group)
        for path, group in groupby(
            sorted(kept, key=lambda pair: (pair[0].path, pair[0].sort_key)),
            key=lambda pair: pair[0].path,
        )
    }

    order = sorted(groups, key=lambda path: (weight(item for item, _ in groups[path]), path))
    return [(path, [entry for _, entry in groups[path]]) for path in order]


def _chips(report: Report) -> str:
    chips = "".join(
        f'<span class="chip {level.lower()}" data-level="{level}">{markup(LEVELS[level])} <b>{count}</b></span>'
        for level, count in counts(report).items()
    )
    gaps = len(report.gaps)
    skipped = f'<a class="chip gap" href="#gaps">{say("skipped", "已跳过")} <b>{gaps}</b></a>'
    return f'<p class="chips">{chips}{skipped if gaps else ""}</p>'


def _controls(report: Report) -> str:
    levels = "".join(
        f'<label class="{level.lower()}"><input type="checkbox" name="level" value="{level}" checked>'
        f"{markup(LEVELS[level])}</label>"
        for level in Severity
    )
    groups = sorted({info.group for info in report.rules.values()})
    options = "".join(
        f'<option value="{escape(group, quote=True)}">{escape(group)}</option>' for group in groups
    )
    return (
        '<nav class="controls" aria-label="filters"><input type="search" id="search" autocomplete="off" '
        'data-hint-en="search findings (/)" data-hint-zh="搜索问题（/）">'
        f'{levels}<select id="group" data-title-en="group of rules" data-title-zh="规则组">'
        f'<option value="" data-en="all groups" data-zh="全部规则组"></option>{options}</select>'
        f'<label><input type="checkbox" id="fixable">{say("with a fix", "可修复")}</label>'
        '<output id="shown"></output><span class="spring"></span>'
        '<button id="all" type="button" data-title-en="open or close all (e)" '
        f'data-title-zh="全部展开或收起（e）">{say("open all", "全部展开")}</button></nav>'
    )


def _bars(report: Report) -> str:
    """Places for two charts, filled by the script with what the filters leave."""
    if len(report.findings) < 2:
        return ""
    titles = (("rule", say("By rule", "按规则")), ("path", say("By file", "按文件")))
    shown = titles if any(item.path for item in report.findings) else titles[:1]
    return '<div class="charts">' + "".join(
        f'<div class="bars" data-by="{by}"><h3>{title}</h3><div class="rows"></div><p class="meta rest"></p></div>'
        for by, title in shown
    ) + "</div>"  # fmt: skip


def _file(path: str, entries: list[str], report: Report) -> str:
    title = escape(path or report.subject or report.tool)
    return f'<section class="file"><h2>{title} <small>{len(entries)}</small></h2>{"".join(entries)}</section>'


def _finding(item: Finding, group: str, style: Style) -> str:
    level = item.severity.lower()
    fix = item.fix if item.fix and item.fix.edits else None
    words = " ".join(
        (
            item.rule,
            item.name,
            item.path,
            item.location.scope,
            item.message("en"),
            item.message("zh"),
        )
    )
    badge = (
        f'<span class="badge {fix.safety}">{markup(FIX_BADGE[fix.safety])}</span>' if fix else ""
    )
    reason = f"<li>{markup(item.why)}</li>" if item.why else ""
    remedy = (
        f'<li class="do"><b>{say("Do: ", "建议：")}</b>{markup(item.remedy)}</li>'
        if item.remedy
        else ""
    )
    evidence = "".join(draw.html(one, style) for one in item.evidence)
    attributes = {
        "level": item.severity, "group": group, "fix": int(fix is not None),
        "rule": f"{item.rule} {item.name}", "path": item.path, "words": words.lower(),
    }  # fmt: skip
    data = " ".join(
        f'data-{key}="{escape(str(value), quote=True)}"' for key, value in attributes.items()
    )
    return (
        f'<details class="finding {level}" {data} id="f-{escape(item.fingerprint, quote=True)}">'
        f'<summary><span class="level {level}">{markup(LEVELS[item.severity])}</span>'
        f'<span class="place">{_place(item)}</span><span class="what">{markup(item.what)}</span>'
        f'{badge}<span class="rule">{escape(item.rule)} {escape(item.name)}</span></summary>'
        f'<div class="body"><ul>{reason}{remedy}</ul>{evidence}'
        f'<p class="meta">{_meta(item, style)}</p></div></details>'
    )


def _place(item: Finding) -> str:
    where = item.location
    if not where.line:
        return escape(str(where))
    cell = say(f"Cell {where.cell}, ", f"单元格 {where.cell}，") if where.cell else ""
    return cell + say(f"Line {where.line}", f"第 {where.line} 行")


def _meta(item: Finding, style: Style) -> str:
    """How sure it is, where it is, how to open it, and what to type about it."""
    parts = [markup(CONFIDENCE[item.confidence]), escape(item.location.scope), _editor(item, style)]
    if item.tool in ("check", "watch"):
        parts.append(f"<code>torchstone explain {escape(item.rule)}</code>")
    if item.tool == "check":
        parts.append(f"<code># torchstone: ignore[{escape(item.name)}]</code>")
    return " · ".join(part for part in parts if part)


def _editor(item: Finding, style: Style) -> str:
    """A link that opens the line in an editor that knows the vscode scheme."""
    where = item.location
    if not (style.folder and where.path and where.line):
        return escape(str(where)) if where.path else ""
    target = quote(f"{style.folder.rstrip('/')}/{where.path}", safe="/:", errors="replace")
    link = f"vscode://file/{target.lstrip('/')}:{where.line}:{max(where.column, 1)}"
    return f'<a href="{escape(link, quote=True)}">{escape(str(where))}</a>'


def _nothing() -> str:
    return f'<p class="clean" id="findings">{say("No findings.", "没有发现问题。")}</p>'


def _left_out(count: int) -> str:
    if not count:
        return ""
    en = f"{count} findings are left out to keep this page under 5 MB: torchstone check --format json lists all"
    zh = f"为使页面小于 5 MB，略去了 {count} 个问题：torchstone check --format json 可列出全部"
    return f'<p class="folded">{say(en, zh)}</p>'
