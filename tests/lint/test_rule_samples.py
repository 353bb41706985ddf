"""Rules test themselves from their own samples."""

from __future__ import annotations

import ast
import difflib
import importlib
import re
from dataclasses import dataclass
from types import ModuleType

import pytest

from torchstone.core.finding import Severity
from torchstone.core.fix import apply_edits
from torchstone.core.registry import modules_in
from torchstone.core.report import Report
from torchstone.lint.catalog import GROUPS, all_rules
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions
from torchstone.lint.rule import Rule

RULES = all_rules()
NAMES = ("TS239", "TS241", "TS242")
"""What reports names and arguments that do not exist: no fix may bring one."""


@dataclass(frozen=True)
class Samples:
    """All samples of a rule: the first of each kind stands with the rule, the others beside this file."""

    bad: tuple[str, ...]
    good: tuple[str, ...]
    fixed: tuple[str, ...]


def samples_of(module: str, rule: Rule) -> Samples:
    """`fixed` has one entry for every bad sample, empty where there is no fix."""
    try:
        more = importlib.import_module(f"tests.lint.samples.{module}")
    except ModuleNotFoundError:
        more = ModuleType("none")
    bad = (rule.bad, *getattr(more, "BAD", ()))
    fixed = (rule.fixed, *getattr(more, "FIXED", ("",) * (len(bad) - 1)))
    return Samples(bad, (rule.right, *getattr(more, "GOOD", ())), fixed)


FILES = {
    item.RULE.code: item.__name__.rpartition(".")[2] for item in modules_in("torchstone.lint.rules")
}
ALL = {rule.code: samples_of(FILES[rule.code], rule) for rule in RULES}
BY_NAME = [pytest.param(rule, id=rule.name) for rule in RULES]
BAD = [
    pytest.param(rule, index, id=f"{rule.name}-{index}")
    for rule in RULES
    for index in range(len(ALL[rule.code].bad))
]
GOOD = [
    pytest.param(rule, index, id=f"{rule.name}-{index}")
    for rule in RULES
    for index in range(len(ALL[rule.code].good))
]


def run(source: str, select: tuple[str, ...] = (), confidence: str = "likely") -> Report:
    options = CheckOptions(
        paths=("-",),
        select=select,
        no_cache=True,
        torch="latest",
        stdin_name="sample.py",
        min_confidence=confidence,
    )
    report = check(options, stdin=source.encode())
    assert not report.gaps, [gap.reason.say() for gap in report.gaps]
    return report


def fired(rule: Rule, source: str) -> list[str]:
    # TS001 judges the comments of the rules that run, so its samples need them all
    select = () if rule.code == "TS001" else (rule.code,)
    return [f"{f.rule}:{f.line}" for f in run(source, select).findings if f.rule == rule.code]


@pytest.mark.parametrize(("rule", "index"), BAD)
def test_bad_fires_exactly_once(rule: Rule, index: int) -> None:
    source = ALL[rule.code].bad[index]
    assert len(fired(rule, source)) == 1, fired(rule, source)


@pytest.mark.parametrize(("rule", "index"), GOOD)
def test_good_stays_quiet(rule: Rule, index: int) -> None:
    assert fired(rule, ALL[rule.code].good[index]) == []


@pytest.mark.parametrize("rule", BY_NAME)
def test_first_good_is_clean_under_all_rules(rule: Rule) -> None:
    # the page shows this one as the remedy, so no other rule may object to it
    wrong = [
        f"{f.rule}:{f.line}"
        for f in run(rule.right).findings
        if f.rule == rule.code or f.severity is not Severity.LOW
    ]
    assert wrong == []


def diff_of(before: str, after: str) -> str:
    """As `fixed` is written: what changes, without context and file names."""
    rows = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return "".join(f"{row}\n" for row in list(rows)[2:])


@pytest.mark.parametrize(("rule", "index"), BAD)
def test_fix_turns_bad_into_good_and_is_stable(rule: Rule, index: int) -> None:
    source, expected = ALL[rule.code].bad[index], ALL[rule.code].fixed[index]
    select = () if rule.code == "TS001" else (rule.code,)
    found = [f for f in run(source, select).findings if f.rule == rule.code]
    fix = found[0].fix
    assert (fix is not None) == bool(expected), "a fix needs its `fixed` sample and the reverse"
    if fix is None:
        return
    after = apply_edits(source, fix.edits)
    assert diff_of(source, after) == expected
    ast.parse(after)
    assert fired(rule, after) == [], "the fix does not remove the finding"
    unresolved = {f.message("en") for f in run(after, NAMES).findings}
    assert unresolved <= {f.message("en") for f in run(source, NAMES).findings}, "a name is made up"


@pytest.mark.parametrize("rule", BY_NAME)
def test_rule_is_whole(rule: Rule) -> None:
    assert re.fullmatch(r"TS\d{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.group in GROUPS
    assert rule.bad
    assert rule.right != rule.bad
    every = ALL[rule.code]
    assert len(every.fixed) == len(every.bad)
    for text in (rule.say, rule.why, rule.suggest, rule.page):
        assert text.en, f"{rule.code}: a text is missing in English"
        assert text.zh, f"{rule.code}: a text is missing in Chinese"
    for text in (rule.say, rule.why, rule.suggest):
        assert "\n" not in text.en + text.zh
    assert re.search(r"[\u4e00-\u9fff]", rule.why.zh + rule.suggest.zh)
    assert rule.triggers or rule.code in ("TS001", "TS002"), (
        "a rule needs words that a file must hold"
    )


@pytest.mark.parametrize("rule", BY_NAME)
def test_texts_are_filled_in_completely(rule: Rule) -> None:
    for source in ALL[rule.code].bad:
        select = () if rule.code == "TS001" else (rule.code,)
        for finding in run(source, select).findings:
            if finding.rule != rule.code:
                continue
            for message in (finding.what, finding.why, finding.remedy):
                for lang in ("en", "zh"):
                    names = set(message.text.placeholders()) - set(message.args)
                    assert not names, f"{rule.code}: {names} not filled in ({lang})"


def test_codes_belong_to_their_group() -> None:
    digits = {"torchstone": "0", "precision": "1", "correctness": "2", "performance": "3",
              "distributed": "4", "upgrade": "5"}  # fmt: skip
    wrong = [rule.code for rule in RULES if rule.code[2] != digits[rule.group]]
    assert not wrong
