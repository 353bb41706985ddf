"""The top of a page: which tool, on what, by which command, when; switches and keys."""

from __future__ import annotations

from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.render.markup import escape, markup

_LOGO = '<svg viewBox="0 0 24 24" class="logo" aria-hidden="true"><path d="M12 2l8 6-3 13H7L4 8z"/></svg>'


def say(en: str, zh: str) -> str:
    return markup(Text(en, zh))


def header(report: Report) -> str:
    """Which tool looked at what, and how to do it again."""
    command = (
        f'<span class="run" data-copy="{escape(report.command, quote=True)}">'
        f"<code>{escape(report.command)}</code></span>"
        if report.command
        else ""
    )
    date = f'<time class="meta">{escape(report.date)}</time>' if report.date else ""
    return (
        f'<header><div class="switches">{_switches()}</div>'
        f"<h1>{_LOGO}torchstone <small>{escape(report.tool)}</small></h1>"
        f'<p class="subject">{escape(report.subject)}</p><p class="made">{command}{date}</p></header>'
    )


def _switches() -> str:
    return "".join(
        f'<button id="{name}" type="button" data-title-en="{en}" data-title-zh="{zh}">{sign}</button>'
        for name, sign, en, zh in (
            ("lang", "中 / EN", "switch to Chinese (l)", "切换为英文（l）"),
            ("theme", "◐", "light or dark (t)", "浅色或深色（t）"),
            ("help", "?", "keys (?)", "快捷键（?）"),
        )
    )


def keys_dialog(with_findings: bool) -> str:
    """What each key does."""
    keys = [("t l", say("theme, language", "主题、语言"))]
    if with_findings:
        keys = [
            ("j k", say("next, previous finding", "下一个、上一个问题")),
            ("Enter o", say("open or close it", "展开或收起")),
            ("/", say("search", "搜索")),
            ("1 2 3", say("high, medium, low on or off", "切换 高、中、低")),
            ("e", say("open or close all", "全部展开或收起")),
            *keys,
        ]
    keys += [
        ("← →", say("in a chart: point by point", "在图中：逐点移动")),
        ("Esc", say("in a chart: the whole range again", "在图中：恢复全部范围")),
    ]
    rows = "".join(f"<dt>{key}</dt><dd>{what}</dd>" for key, what in keys)
    return (
        f'<dialog id="keys"><h2>{say("Keys", "快捷键")}</h2><dl>{rows}</dl>'
        f'<form method="dialog"><button>{say("close", "关闭")}</button></form></dialog>'
    )
