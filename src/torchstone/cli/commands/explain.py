"""`torchstone explain RULE`: the page of a rule, of an alert, or of a topic of the skills."""

from __future__ import annotations

import json
from dataclasses import dataclass

from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import only, put, terminal_width, use_colour
from torchstone.core.errors import UsageError
from torchstone.core.options import option, unknown
from torchstone.core.text import Text
from torchstone.lint.catalog import all_rules, find_rule
from torchstone.lint.page import rule_data, rule_page, rule_text
from torchstone.lint.rule import Rule
from torchstone.render.style import Style
from torchstone.skills import Skill, all_skills, find_skill

HELP = Text(
    en="the page of a rule: why, when it is harmless, bad and good code",
    zh="规则说明：原因、无害的情形、正反示例",
)


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """What `torchstone explain` can be told."""

    rule: tuple[str, ...] = option(
        (), "code or name of a rule, a TorchFix code, watch-ALERT, or a topic such as numerical_issues",
        "规则代码或名称、TorchFix 代码、watch-告警，或主题（如 numerical_issues）",
        positional=True, config=False, metavar="RULE",
    )  # fmt: skip


OPTIONS = ExplainOptions


def run(options: ExplainOptions, common: CommonOptions) -> int:
    if not options.rule:
        raise UsageError(
            "explain",
            "no rule",
            Text("a rule's code or name", "规则的代码或名称"),
            Text("see `torchstone rules`", "参见 `torchstone rules`"),
        )
    only(common, "text", "markdown", "json")
    signals = [key for key in options.rule if key.startswith("watch-")]
    topics = {key: skill for key in options.rule if (skill := find_skill(key)) is not None}
    rules = [_find_rule(key) for key in options.rule if key not in signals and key not in topics]
    if common.format == "json":
        data = [rule_data(rule) for rule in rules] + [_signal(key, common.lang) for key in signals]
        data += [_topic_data(skill, common.lang) for skill in topics.values()]
        text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    elif common.format == "markdown":
        text = "\n".join(rule_page(rule, common.lang) for rule in rules)
    else:
        colour = use_colour(common.colour) and not common.output
        style = Style(lang=common.lang, colour=colour, width=terminal_width(common))
        text = "\n".join(rule_text(rule, style) for rule in rules)
    if common.format != "json":
        text += "\n".join("\n".join(_signal(key, common.lang).values()) + "\n" for key in signals)
        text += "\n".join(skill.body(common.lang) for skill in topics.values())
    put(text, common)
    return 0


def _find_rule(key: str) -> Rule:
    """A rule, or an error that names the nearest rule or topic, else all topics."""
    try:
        return find_rule(key)
    except UsageError:
        topics = tuple(all_skills())
        names = [name for rule in all_rules() for name in (rule.code, rule.name)]
        shown = ", ".join(topics)
        more = Text(
            f"topics: {shown}; rules: see `torchstone rules`",
            f"主题：{shown}；规则参见 `torchstone rules`",
        )
        raise unknown("explain", key, (*names, *topics), more=more) from None


def _topic_data(skill: Skill, lang: str) -> dict[str, str]:
    return {
        "topic": skill.name,
        "description": skill.description(lang),
        "page": skill.body(lang),
        "cases": ", ".join(path.name for path in skill.cases()),
    }


def _signal(key: str, lang: str) -> dict[str, str]:
    """What an alert of `watch` means."""
    needs_torch("explain watch-…")
    from torchstone.watch.measure.signal import all_signals

    known = {f"watch-{signal.name.replace('_', '-')}": signal for signal in all_signals()}
    if key not in known:
        raise unknown("explain", key, tuple(known))
    signal = known[key]
    return {
        "signal": f"{key}: {signal.title.get(lang)}",
        "why": Text("why: ", "原因：").get(lang) + signal.why.get(lang),
        "remedy": Text("do: ", "建议：").get(lang) + signal.remedy.get(lang),
    }
