"""What was supplied in the place of what is missing, and what that means for findings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from torchstone.core.finding import Finding, Location, Severity
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.text import Message, Text
from torchstone.dryrun import rules
from torchstone.dryrun.record import Record, Stop
from torchstone.dryrun.reporting.findings import TOOL
from torchstone.starting.supplies import (
    Arguments,
    MadeDataset,
    MadeFile,
    MadeInputs,
    MadePretrained,
    MadeResource,
    MadeValues,
    MadeWeights,
    NameStandIn,
    PlainPackage,
    StandIn,
    Supply,
)

SUPPLIED = "supplied"
_NAMED = 3
_MADE = (
    MadeFile,
    MadeDataset,
    MadeInputs,
    MadeValues,
    MadePretrained,
    MadeWeights,
    MadeResource,
    PlainPackage,
)
VALUES = (*_MADE, StandIn, NameStandIn)
"""Supplies whose values are not those of the real thing."""


def are_values_made(supply: Supply) -> bool:
    """Whether its values are not those of the real thing."""
    return isinstance(supply, VALUES) or _is_guess(supply)


def _is_guess(supply: Supply) -> bool:
    return isinstance(supply, Arguments) and supply.is_guessed


def supply_measures(supplies: Sequence[Supply]) -> list[Measure]:
    """One table with everything that was supplied; nothing where nothing was."""
    if not supplies:
        return []
    label = Text("supplied for this run", "为本次运行提供的替代")
    how = Text(
        "missing here, and assumed; --as-it-is supplies nothing",
        "此处缺少，因而作了假设；--as-it-is 不提供任何替代",
    )
    said = list(dict.fromkeys(_say_group(item, supplies) for item in supplies))
    table = Table(label, (Text("what", "内容"),), tuple((item,) for item in said))
    return [Measure(SUPPLIED, len(said), "", how, label, evidence=(table,), tool=TOOL)]


def _say_group(supply: Supply, supplies: Sequence[Supply]) -> Text:
    """One sentence for all made files of a folder that are of one form."""
    if not isinstance(supply, MadeFile):
        return supply.say()
    home = os.path.dirname(supply.path)
    same = [
        item
        for item in supplies
        if isinstance(item, MadeFile)
        and (item.form, os.path.dirname(item.path)) == (supply.form, home)
    ]
    if len(same) == 1:
        return supply.say()
    kind = supply.form.partition(":")[0]
    return Text(
        f"files in {home} are missing: {len(same)} made ones ({kind})",
        f"{home} 中缺少文件：使用 {len(same)} 个生成的文件（{kind}）",
    )


def comes_from_supplies(stop: Stop | None, supplies: Sequence[Supply]) -> bool:
    """Whether an exception of the program may be due to made data or a stand-in. A name that is not
    defined is missing whatever the data."""
    if stop is None or stop.cause != "program" or stop.exception == "NameError":
        return False
    return any(map(are_values_made, supplies))


def supplies_do_not_fit(record: Record, supplies: Sequence[Supply]) -> Gap:
    """The program does not go on with what was supplied: nothing is said about the program."""
    stop = record.stop
    assert stop is not None
    made = [item.say() for item in supplies if are_values_made(item)]
    text = Text(
        "the program does not go on with what was supplied in the place of what is missing "
        "({kind}: {message}); supplied: {made}",
        "程序无法使用为缺失部分提供的替代继续运行（{kind}：{message}）；已提供：{made_zh}",
    )
    given = {
        "kind": stop.exception,
        "message": stop.message.splitlines()[0] if stop.message else "",
        "made": "; ".join(item.en for item in made[:_NAMED]),
        "made_zh": "；".join(item.zh for item in made[:_NAMED]),
    }
    close = Text(
        "install the packages and put the data there, or give --python and --data",
        "请安装软件包并放好数据，或使用 --python 与 --data",
    )
    return Gap(
        stop.place.path or "script",
        Message("supplies-do-not-fit", text, given),
        close.en,
        Location(stop.place.path, stop.place.line),
        failed=True,
        tool=TOOL,
        close_zh=close.zh,
    )


def rest_on_supplies(finding: Finding, supplies: Sequence[Supply]) -> Finding:
    """A finding that may come from what was supplied names it and is MEDIUM at most.

    Made data may lead to anything. A stand-in cannot enter a computation, so that it leads to
    exceptions of the program only.
    """
    causes = [item for item in supplies if isinstance(item, _MADE) or _is_guess(item)]
    if not causes and finding.rule == rules.RAISED.id:
        causes = [item for item in supplies if isinstance(item, StandIn)]
    if not causes:
        return finding
    said = [item.say() for item in causes[:_NAMED]]
    why = Message(
        f"{finding.why.id}-supplied",
        Text(
            f"{finding.why.say('en')}; it rests on what was supplied: {'; '.join(item.en for item in said)}",
            f"{finding.why.say('zh')}；它以所提供的替代为前提：{'；'.join(item.zh for item in said)}",
        ),
    )
    severity = max(finding.severity, Severity.MEDIUM, key=lambda item: item.rank)
    return replace(finding, severity=severity, why=why)


def rest_on(findings: tuple[Finding, ...], supplies: tuple[Supply, ...]) -> tuple[Finding, ...]:
    """Findings of a run in which values were made: MEDIUM at most, and they say what they rest on."""
    made = [item.say() for item in supplies if are_values_made(item)]
    if not made:
        return findings
    words = Text("it rests on: {made}", "其前提：{made_zh}")
    given = {
        "made": "; ".join(item.en for item in made),
        "made_zh": "；".join(item.zh for item in made),
    }
    return tuple(
        replace(
            item,
            severity=Severity.MEDIUM if item.severity is Severity.HIGH else item.severity,
            why=Message(
                item.why.id,
                Text(f"{item.why.text.en} ({words.en})", f"{item.why.text.zh}（{words.zh}）"),
                {**item.why.args, **given},
            ),
        )
        for item in findings
    )
