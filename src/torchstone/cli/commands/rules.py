"""`torchstone rules`: the list of rules."""

from __future__ import annotations

import json
from dataclasses import dataclass

from torchstone.cli.common import CommonOptions
from torchstone.cli.show import only, put, terminal_width, use_colour
from torchstone.core.options import option
from torchstone.core.text import Text
from torchstone.lint.catalog import GROUPS, all_rules
from torchstone.render.style import SEVERITY_COLOUR, Style, cells

HELP = Text(en="the list of rules", zh="规则列表")


@dataclass(frozen=True, slots=True)
class RulesOptions:
    """What `torchstone rules` can be told."""

    group: str = option("", "only this group", "只列出该组", choices=GROUPS, config=False)


OPTIONS = RulesOptions


def run(options: RulesOptions, common: CommonOptions) -> int:
    only(common, "text", "json")
    rules = [rule for rule in all_rules() if options.group in ("", rule.group)]
    if common.format == "json":
        rows = [
            {
                "code": rule.code, "name": rule.name, "group": rule.group,
                "severity": rule.severity, "default": rule.default, "fixable": rule.fixable,
                "aliases": list(rule.aliases), "url": rule.url,
                "summary": {"en": rule.info().summary.en, "zh": rule.info().summary.zh},
            }
            for rule in rules
        ]  # fmt: skip
        put(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", common)
        return 0
    style = Style(lang=common.lang, colour=use_colour(common.colour) and not common.output)
    width = max((len(rule.name) for rule in rules), default=0)
    lines: list[str] = []
    for group in GROUPS:
        members = [rule for rule in rules if rule.group == group]
        if not members:
            continue
        lines += ["", style.paint(group, "bold")]
        for rule in members:
            level = style.paint(f"{rule.severity:<6}", SEVERITY_COLOUR[rule.severity])
            mark = "*" if rule.fixable else " "
            text = rule.info().summary.get(common.lang)
            room = terminal_width(common) - width - 20
            while room > 20 and cells(text) > room:
                text = text[:-2] + "…"
            lines.append(f"  {rule.code} {rule.name:<{width}} {level} {mark} {text}")
    count = len(rules)
    lines += ["", style.say(f"{count} rules; * has a fix; torchstone explain CODE says more",
                            f"共 {count} 条规则；* 可修复；torchstone explain 代码 查看详情")]  # fmt: skip
    put("\n".join(lines).lstrip("\n") + "\n", common)
    return 0
