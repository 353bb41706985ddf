"""The first screen: one sentence, what was looked at, tiles, pictures, and what to do next."""

from __future__ import annotations

from itertools import groupby

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.evidence import Diff, Snippet
from torchstone.core.finding import Severity
from torchstone.core.pictures import Evidence
from torchstone.core.report import Report
from torchstone.core.text import Text, words
from torchstone.render import draw
from torchstone.render.markup import escape, markup
from torchstone.render.order import counts, worst_first
from torchstone.render.page.header import say
from torchstone.render.style import Style
from torchstone.render.words import LEVELS

_SIGNS = {"good": "✓", "bad": "✗", "warning": "!", "plain": ""}


def answer_section(report: Report, style: Style) -> str:
    """The answer of a report; of a linter's, what to fix first."""
    answer = report.answer or _first_to_fix(report)
    if answer is None:
        return ""
    warnings = "".join(f'<p class="warning">{markup(item)}</p>' for item in answer.warnings)
    lines = "".join(f"<li>{markup(item)}</li>" for item in answer.lines)
    return (
        f'<section class="answer {answer.state}">{warnings}'
        f'<p class="headline"><b aria-hidden="true">{_SIGNS[answer.state]}</b> {markup(answer.headline)}</p>'
        f"{_about(answer)}{_tiles(answer.tiles)}"
        f"{f'<ul class=lines>{lines}</ul>' if lines else ''}"
        f"{pictures(answer.pictures, style)}{_assumptions(answer)}{_next(answer)}</section>"
    )


def _first_to_fix(report: Report) -> Answer | None:
    """The worst finding with its fix, above the list of all of them."""
    if not report.findings:
        return None
    first = worst_first(report.findings)[0]
    found = {level: count for level, count in counts(report).items() if count}
    en = ", ".join(f"{count} {level}" for level, count in found.items())
    zh = "、".join(f"{LEVELS[level].zh} {count}" for level, count in found.items())
    files = len({item.path for item in report.findings})
    place = str(first.location)
    why, remedy = (Text(item.say("en"), item.say("zh")) for item in (first.why, first.remedy))
    fix = [item for item in first.evidence if isinstance(item, Diff)]
    source = [item for item in first.evidence if isinstance(item, Snippet)]
    check = f"torchstone check {report.subject}".rstrip()
    return Answer(
        headline=Text(f"{en} in {files} file{'s' if files > 1 else ''}. Fix first: {first.message('en')}",
                      f"{files} 个文件中的问题：{zh}。首先修复：{first.message('zh')}"),
        state="bad" if first.severity is Severity.HIGH else "warning",
        about=(Fact(Text("where", "位置"), place), Fact(Text("rule", "规则"), f"{first.rule} {first.name}")),
        lines=tuple(item for item in (why, remedy) if item.en),
        pictures=tuple((fix or source)[:1]),
        next=(f"{check} --diff", f"torchstone explain {first.rule}", f"{check} --format github  # in CI"),
    )  # fmt: skip


def _about(answer: Answer) -> str:
    rows = "".join(
        f"<div><dt>{markup(fact.label)}</dt><dd>{markup(fact.value)}</dd></div>"
        for fact in answer.about
    )
    return f'<dl class="about">{rows}</dl>' if rows else ""


def _tiles(tiles: tuple[Tile, ...]) -> str:
    shown = "".join(
        f'<div class="tile {tile.state}"><span>{markup(tile.label)}</span><b>{markup(tile.value)}</b>'
        f"{f'<small>{markup(tile.note)}</small>' if words(tile.note, 'en') else ''}</div>"
        for tile in tiles
    )
    return f'<div class="tiles">{shown}</div>' if shown else ""


def pictures(evidence: tuple[Evidence, ...], style: Style) -> str:
    """Pictures one below the other; several plots in a row share a grid and a crosshair."""
    parts: list[str] = []
    for kind, group in groupby(evidence, key=lambda item: item.kind):
        shown = [draw.html(item, style) for item in group]
        grid = kind == "plot" and len(shown) > 1
        parts.append(f'<div class="grid">{"".join(shown)}</div>' if grid else "".join(shown))
    return "".join(parts)


def _assumptions(answer: Answer) -> str:
    if not answer.assumptions:
        return ""
    rows = "".join(f"<li>{markup(item)}</li>" for item in answer.assumptions)
    count = len(answer.assumptions)
    title = say(f"Assumptions ({count})", f"假设（{count}）")
    return f'<details class="more assumptions"><summary>{title}</summary><ul>{rows}</ul></details>'


def _next(answer: Answer) -> str:
    if not answer.next:
        return ""
    rows = "".join(
        f'<span class="run" data-copy="{escape(line, quote=True)}"><code>{escape(line)}</code></span>'
        for line in answer.next
    )
    return f'<p class="next"><span>{say("Next:", "下一步：")}</span> {rows}</p>'
