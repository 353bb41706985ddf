"""The page of a rule, made from the rule itself: for the terminal, the docs and agents."""

from __future__ import annotations

from typing import Any

from torchstone.lint.rule import Rule
from torchstone.render.style import SEVERITY_COLOUR, Style

_HEADINGS = {
    "why": ("Why it is bad", "为什么有害"),
    "do": ("What to do", "怎么办"),
    "bad": ("Bad", "错误示例"),
    "good": ("Good", "正确示例"),
    "fixed": ("After the fix", "修复之后"),
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


def _sections(rule: Rule, lang: str) -> list[tuple[str, str, bool]]:
    """(heading, body, is code) in the order they are read."""
    info = rule.info()
    rows = [
        (_heading("why", lang), info.why.get(lang), False),
        (_heading("do", lang), info.remedy.get(lang), False),
        (_heading("bad", lang), rule.bad[0], True),
        (_heading("good", lang), rule.good[0], True),
    ]
    if rule.fixable:
        rows.append((_heading("fixed", lang), next(text for text in rule.fixed if text), True))
    if rule.page.get(lang):
        rows.append((_heading("more", lang), rule.page.get(lang), False))
    rows.append((_heading("off", lang), f"# torchstone: ignore[{rule.name}] reason", True))
    return rows


def rule_page(rule: Rule, lang: str) -> str:
    """Markdown."""
    title = rule.info().summary.get(lang)
    out = [f"# {rule.code} {rule.name}", "", title, "", f"*{_facts(rule, lang)}*", ""]
    for heading, body, code in _sections(rule, lang):
        out += [f"## {heading}", ""]
        out += ["```python", body.rstrip("\n"), "```"] if code else [body]
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
            out.append(f"  {style.paint(line, colour) if colour else line}".rstrip())
        out.append("")
    return "\n".join(out)


def rule_data(rule: Rule) -> dict[str, Any]:
    """For agents."""
    info = rule.info()
    return {
        "code": rule.code,
        "name": rule.name,
        "group": rule.group,
        "severity": rule.severity.value,
        "aliases": list(rule.aliases),
        "fixable": rule.fixable,
        "summary": {"en": info.summary.en, "zh": info.summary.zh},
        "why": {"en": info.why.en, "zh": info.why.zh},
        "suggest": {"en": info.remedy.en, "zh": info.remedy.zh},
        "more": {"en": rule.page.en, "zh": rule.page.zh},
        "bad": list(rule.bad),
        "good": list(rule.good),
        "fixed": list(rule.fixed),
    }
