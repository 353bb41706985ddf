"""The page of a rule, made from the rule itself: for the terminal, the docs and agents."""

from __future__ import annotations

import functools
from typing import Any

from torchstone.core.text import Text
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions
from torchstone.lint.rule import Rule
from torchstone.render.style import SEVERITY_COLOUR, Style, wrapped

_HEADINGS = {
    "why": ("Why it is bad", "为什么有害"),
    "do": ("What to do", "怎么办"),
    "bad": ("Bad", "错误示例"),
    "good": ("Good", "正确示例"),
    "fixed": ("What the fix changes", "修复所做的修改"),
    "more": ("How it is decided, and when it is harmless", "如何判定，以及何时无害"),
    "off": ("How to silence it", "如何屏蔽"),
}


def _heading(key: str, lang: str) -> str:
    return _HEADINGS[key][lang == "zh"]


def _facts(rule: Rule, lang: str) -> str:
    def say(en: str, zh: str) -> str:
        return zh if lang == "zh" else en

    parts = [rule.group, rule.severity.value]
    parts.append(
        say("has a fix", "可修复") if rule.fixable else say("no automatic fix", "无自动修复")
    )
    if rule.torch_from > (1, 0):
        version = ".".join(map(str, rule.torch_from))
        parts.append(say(f"for torch >= {version}", f"适用于 torch >= {version}"))
    if rule.aliases:
        parts.append("TorchFix " + ", ".join(rule.aliases))
    if not rule.default:
        parts.append(say("off unless selected", "默认关闭"))
    return " · ".join(parts)


@functools.cache
def _told(rule: Rule) -> tuple[Text, Text]:
    """Reason and remedy as the first bad sample gets them, with every blank filled in."""
    select = () if rule.code == "TS001" else (rule.code,)
    options = CheckOptions(
        paths=("-",), select=select, no_cache=True, stdin_name="sample.py", torch="latest"
    )
    found = [f for f in check(options, rule.bad.encode()).findings if f.rule == rule.code]
    if not found:
        return rule.info().why, rule.info().remedy
    why, remedy = found[0].why, found[0].remedy
    return Text(why.say("en"), why.say("zh")), Text(remedy.say("en"), remedy.say("zh"))


def _sections(rule: Rule, lang: str) -> list[tuple[str, str, str]]:
    """(heading, body, language of the code or nothing) in the order they are read."""
    why, remedy = _told(rule)
    reason = "原因" if lang == "zh" else "reason"
    rows = [
        (_heading("why", lang), why.get(lang), ""),
        (_heading("do", lang), remedy.get(lang), ""),
        (_heading("bad", lang), rule.bad, "python"),
        (_heading("good", lang), rule.right, "python"),
    ]
    if rule.fixed:
        rows.append((_heading("fixed", lang), rule.fixed, "diff"))
    if rule.page.get(lang):
        rows.append((_heading("more", lang), rule.page.get(lang), ""))
    rows.append((_heading("off", lang), f"# torchstone: ignore[{rule.name}] {reason}", "python"))
    return rows


def rule_page(rule: Rule, lang: str) -> str:
    """Markdown."""
    title = rule.info().summary.get(lang)
    out = [f"# {rule.code} {rule.name}", "", title, "", f"*{_facts(rule, lang)}*", ""]
    for heading, body, code in _sections(rule, lang):
        out += [f"## {heading}", ""]
        out += [f"```{code}", body.rstrip("\n"), "```"] if code else [body]
        out.append("")
    return "\n".join(out)


def rule_text(rule: Rule, style: Style) -> str:
    """For a terminal."""
    level = style.paint(f"[{rule.severity}]", "bold", SEVERITY_COLOUR[rule.severity])
    out = [f"{style.paint(f'{rule.code} {rule.name}', 'bold')} {level}"]
    out += [rule.info().summary.get(style.lang), style.paint(_facts(rule, style.lang), "dim"), ""]
    for heading, body, code in _sections(rule, style.lang):
        out.append(style.paint(heading, "bold"))
        colour = "cyan" if code else ""
        for line in body.rstrip("\n").split("\n"):
            rows = [f"  {line}"] if code else wrapped(f"  {line}", style.width, "  ")
            out += ((style.paint(row, colour) if colour else row).rstrip() for row in rows)
        out.append("")
    return "\n".join(out)


def rule_data(rule: Rule) -> dict[str, Any]:
    """For agents."""
    info = rule.info()
    why, remedy = _told(rule)
    return {
        "code": rule.code,
        "name": rule.name,
        "group": rule.group,
        "severity": rule.severity.value,
        "aliases": list(rule.aliases),
        "fixable": rule.fixable,
        "summary": {"en": info.summary.en, "zh": info.summary.zh},
        "why": {"en": why.en, "zh": why.zh},
        "suggest": {"en": remedy.en, "zh": remedy.zh},
        "more": {"en": rule.page.en, "zh": rule.page.zh},
        "bad": [rule.bad],
        "good": [rule.right],
        "fixed": [rule.fixed] if rule.fixed else [],
    }
