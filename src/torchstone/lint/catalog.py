"""All rules, found by their folder, and how a user names some of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from torchstone.core.errors import TorchstoneError
from torchstone.core.options import unknown
from torchstone.core.registry import modules_in
from torchstone.core.text import Text
from torchstone.lint.rule import Rule

GROUPS = ("precision", "correctness", "performance", "distributed", "upgrade", "torchstone")


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule in order of code; two files with one code or name are a mistake of ours."""
    rules = sorted(
        (module.RULE for module in modules_in("torchstone.lint.rules")), key=lambda rule: rule.code
    )
    names = [key for rule in rules for key in (rule.code, rule.name)]
    twice = {key for key in names if names.count(key) > 1} if len(set(names)) < len(names) else ()
    if twice:
        raise ValueError(
            f"rules: {sorted(twice)} used twice, expected once; rename one file's rule"
        )
    return tuple(rules)


def find_rule(key: str) -> Rule:
    """One rule by code, name or another tool's code."""
    wanted = key.strip().lower()
    for rule in all_rules():
        if wanted in (rule.code.lower(), rule.name, *map(str.lower, rule.aliases)):
            return rule
    raise no_such_rule(key)


def no_such_rule(key: str, where: str = "rule") -> TorchstoneError:
    known = [name for rule in all_rules() for name in (rule.code, rule.name)]
    return unknown(
        where, key, known, more=Text("see `torchstone rules`", "参见 `torchstone rules`")
    )


def matching(keys: Iterable[str], where: str) -> set[str]:
    """Codes of the rules that codes, names, prefixes or groups stand for."""
    codes: set[str] = set()
    for key in keys:
        wanted = key.strip().lower()
        found = {
            rule.code
            for rule in all_rules()
            if wanted in ("all", rule.group, rule.name, *map(str.lower, rule.aliases))
            or (wanted and rule.code.lower().startswith(wanted))
        }
        if not found:
            raise no_such_rule(key, where)
        codes |= found
    return codes


def selected(select: Iterable[str], ignore: Iterable[str]) -> tuple[Rule, ...]:
    """The rules to run."""
    wanted = matching(select, "--select")
    refused = matching(ignore, "--ignore")
    return tuple(
        rule
        for rule in all_rules()
        if rule.code not in refused and (rule.code in wanted if wanted else rule.default)
    )
