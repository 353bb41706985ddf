"""The full text form: `File:`, `Line 45: [HIGH] …`, `  -> reason`, `  -> what to do`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchstone.core import quantity
from torchstone.core.evidence import Snippet
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.render import draw
from torchstone.render.order import counts, worst_file_first, worst_first
from torchstone.render.style import SEVERITY_COLOUR, Style, cells, printable, wrapped
from torchstone.render.words import COLOURS, CONFIDENCE, FIX, LEVELS, MARKS

if TYPE_CHECKING:
    from torchstone.core.answer import Answer, Tile

_INDENT = "     "


def render(report: Report, style: Style) -> str:
    if report.answer is not None:
        return _answered(report, report.answer, style)
    blocks = _findings(report, style)
    if style.detail:
        blocks += [_measures(report, style)] if style.detail > 1 or report.tool != "check" else []
        blocks += [gap_line(gap, style) for gap in report.gaps]
        blocks.append(summary(report, style))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _findings(report: Report, style: Style) -> list[str]:
    blocks = []
    for path, in_order in worst_file_first(report):
        findings = sorted(in_order, key=lambda item: item.severity.rank)
        title = style.paint(f"File: {printable(path or report.subject or report.tool)}", "bold")
        blocks.append(title + "\n" + "\n\n".join(_finding(item, style) for item in findings))
    return blocks


def _answered(report: Report, answer: Answer, style: Style) -> str:
    """The first screen; with more detail, the findings and figures behind it."""
    first = answer_lines(answer, style)
    if not style.detail:
        return first[0] + "\n"
    shown = report.gaps if style.detail > 1 else report.gaps[:_MOST_GAPS]
    first += [gap_line(gap, style) for gap in shown]
    if len(report.gaps) > len(shown):
        first.append(style.say(f"… {len(report.gaps) - len(shown)} more skipped: -v",
                               f"… 另有 {len(report.gaps) - len(shown)} 项跳过：-v"))  # fmt: skip
    blocks = ["\n".join(first)]
    if style.detail > 1:
        blocks += [*_findings(report, style), _measures(report, style)]
    follow = _follow(report, answer, style)
    if follow:
        blocks.append(follow)
    return "\n\n".join(block for block in blocks if block) + "\n"


_MOST_GAPS = 3
"""Skipped parts on a first screen; all of them with -v."""


def answer_lines(answer: Answer, style: Style) -> list[str]:
    """The headline first: quiet output is this one line."""
    colour = COLOURS[answer.state]
    mark = f"{MARKS[answer.state]} " if answer.state != "plain" else ""
    lines = [style.paint(printable(mark + style.words(answer.headline)), "bold", colour)]
    if not style.detail:
        return lines
    lines = [
        style.paint(printable("! " + style.words(item)), "yellow") for item in answer.warnings
    ] + lines
    lines = [row for line in lines for row in wrapped(line, style.width, "  ")]
    colon = style.say(": ", "：")
    facts = [f"{style.words(f.label)}{colon}{style.words(f.value)}" for f in answer.about]
    if facts:
        lines += wrapped(printable("  " + " · ".join(facts)), style.width, "  ")
    lines += _tile_lines(answer.tiles, style)
    plots = 0
    for picture in answer.pictures:
        plots += picture.kind == "plot"
        small = picture.kind in _SMALL or (picture.kind == "plot" and plots <= _PLOTS)
        if style.detail > 1 or small:
            rows = draw.text(picture, style)
            # one curve says its name itself
            rows = rows[1:] if picture.kind == "plot" and len(rows) == 2 else rows
            lines += (f"  {row.removeprefix('  ')}" for row in rows)
    for line in answer.lines:
        lines += wrapped(printable(f"  - {style.words(line)}"), style.width, "    ")
    if answer.assumptions and style.detail > 1:
        word = style.say("Assumption: ", "假设：")
        lines += (printable(f"  {word}{style.words(item)}") for item in answer.assumptions)
    return lines


_SMALL = frozenset(("stack", "strip", "series", "lanes", "timeline", "snippet", "tasks", "diff"))
"""Pictures that take a line or two in a terminal, and changes, which are what was asked for."""
_PLOTS = 3
"""Curves of a first screen, a row of blocks each."""


def _tile_lines(tiles: tuple[Tile, ...], style: Style) -> list[str]:
    labels = [printable(style.words(tile.label)) for tile in tiles]
    values = [printable(style.words(tile.value)) for tile in tiles]
    wide, long = (max(map(cells, column), default=0) for column in (labels, values))
    narrow = 0 < style.width < 2 * (wide + long)  # no room for columns: one after the other
    wide, long, indent = (0, 0, 6) if narrow else (wide, long, wide + 4)
    lines = []
    for tile, label, value in zip(tiles, labels, values, strict=True):
        shown = style.paint(value, "bold", COLOURS[tile.state]) if tile.state != "plain" else value
        gap, room = " " * (wide - cells(label)), " " * (long - cells(value))
        row = f"  {label}{gap}  {shown}{room}  {printable(style.words(tile.note))}"
        lines += wrapped(row.rstrip(), style.width, " " * indent)
    return lines


_OWN_FOLDER = ("review",)
"""Tools that write their page into a folder of their own and name it themselves."""


def _follow(report: Report, answer: Answer, style: Style) -> str:
    """Where to look further."""
    word = style.say("Next: ", "下一步：")
    lines = [f"{word}{printable(line)}" for line in answer.next]
    if style.detail == 1 and (report.measures or report.findings):
        page = "-v" if report.tool in _OWN_FOLDER else "-v, or -o report.html"
        more = page if report.command else "report.to('html')"
        lines.append(style.say(f"More: {more}", f"更多：{more.replace(', or', '，或')}"))
    return "\n".join(lines)


_STAKE = 48
"""Characters of source that a reason names; the marked lines below show all of it."""


def _at_stake(item: Finding, style: Style) -> str:
    """The source in question, behind the reason of a finding whose own words name nothing."""
    marked = next((part for part in item.evidence if isinstance(part, Snippet)), None)
    named = "`" in item.message(style.lang) + item.why.say(style.lang)
    if named or item.tool != "check" or marked is None or not style.detail or not marked.mark_line:
        return ""
    row = marked.text.split("\n")[marked.mark_line - marked.line]
    text = " ".join(row[marked.mark_start : marked.mark_end].split())
    short = text if len(text) <= _STAKE else f"{text[: _STAKE - 2]} …"
    return style.say(f": `{short}`", f"：`{short}`") if short else ""


def _finding(item: Finding, style: Style) -> str:
    colour = SEVERITY_COLOUR[item.severity]
    level = style.paint(f"[{item.severity}]", "bold", colour)
    head = f"{_place(item, style)}: {level} {printable(item.message(style.lang))}"
    lines = wrapped(
        head, style.width + len(level) - len(str(item.severity)) - 2 if style.width else 0, "  "
    )
    if item.why:
        lines.append(_arrow(item.why.say(style.lang) + _at_stake(item, style), style))
    if item.remedy:
        word = style.say("suggestion: ", "建议：")
        lines.append(_arrow(word + item.remedy.say(style.lang), style))
    if style.detail:
        for evidence in item.evidence:
            if style.detail > 1 or isinstance(evidence, Snippet):
                lines += (_INDENT + row for row in draw.text(evidence, style))
        footer = wrapped(_INDENT + printable(_footer(item, style)), style.width, _INDENT)
        if item.tool == "check" and item.line:  # a line of its own: it is copied
            comment = f"# torchstone: ignore[{item.name}]"
            footer.append(_INDENT + style.say(f"to ignore: {comment}", f"如需忽略：{comment}"))
        lines += (_INDENT + style.paint(row.removeprefix(_INDENT), "dim") for row in footer)
    return "\n".join(lines)


def _arrow(text: str, style: Style) -> str:
    """`  -> text`, broken at the terminal's width with the text kept in its column."""
    return "\n".join(wrapped(f"  -> {printable(text)}", style.width, "     "))


def _place(item: Finding, style: Style) -> str:
    where = item.location
    if not where.line:
        return printable(str(where)) or item.tool
    cell = style.say(f"Cell {where.cell}, ", f"Cell {where.cell}, ") if where.cell else ""
    return f"{cell}Line {where.line}"


def _footer(item: Finding, style: Style) -> str:
    where = str(item.location) if item.path and item.line else ""
    parts = [*([where] if where else []), f"{item.rule} {item.name}"]
    parts.append(style.words(CONFIDENCE[item.confidence]))
    if item.fix and item.fix.edits:
        parts.append(style.words(FIX[item.fix.safety]))
    if item.gain:
        parts.append(f"{item.gain.value:g} {item.gain.unit} ({style.words(item.gain.how)})")
    return " · ".join(parts)


def gap_line(gap: Gap, style: Style) -> str:
    """What was skipped, why, and what to run."""
    word = style.say("Failed" if gap.failed else "Skipped", "失败" if gap.failed else "已跳过")
    colon, stop = style.say(": ", "："), style.say(". ", "。")
    line = f":{gap.location.line}" if gap.location.line else ""
    head = f"{style.paint(word, 'magenta')}{colon}{printable(gap.subject)}{line}"
    reason = printable(gap.reason.say(style.lang)).rstrip(".。")
    head_of_act = (
        style.say("Run: ", "运行：") if gap.is_command() else style.say("To do: ", "处理：")
    )
    act = gap.say_close(style.lang)
    run = head_of_act + printable(act) if act.strip("–- ") else ""
    said = f"{head}{style.say(' – ', '，')}{reason}{stop}{run}".rstrip()
    return "\n".join(wrapped(said, style.width, "  "))


def _measures(report: Report, style: Style) -> str:
    rows = []
    colon = style.say(": ", "：")
    for item in report.measures:
        spread = ""
        if item.spread is not None:  # scaled as the value is
            known = quantity.scales(item.unit)
            spread = (
                f" ± {quantity.human(item.spread, item.unit) if known else f'{item.spread:.3g}'}"
            )
        label = item.label.get(style.lang) or item.name
        if item.name == "note":  # words, not a number
            said = f"{label}{colon}{style.words(item.how)}"
            rows += wrapped(printable(said), style.width, "  ")
            continue
        value = quantity.human(item.value, item.unit)
        said = f"{label}{colon}{value}{spread} ({style.words(item.how)})"
        rows += wrapped(printable(said), style.width, "  ")
        shown = item.evidence if style.detail > 1 else item.evidence[:1]
        for evidence in shown:
            rows += ("  " + row for row in draw.text(evidence, style))
    if style.detail == 1 and any(len(item.evidence) > 1 for item in report.measures):
        rows.append(
            style.say(
                "More tables and pictures: -v, --format html", "更多表格与图：-v、--format html"
            )
        )
    return "\n".join(rows)


_HIDDEN = ("baseline_hidden", "low_hidden")


def summary(report: Report, style: Style) -> str:
    """How many findings there are, of what kind, and the next command."""
    found = counts(report)
    total = sum(found.values())
    gaps = len(report.gaps)
    tail = style.say(f", {gaps} skipped", f"，跳过 {gaps} 处") if gaps else ""
    counted = {m.name: int(m.value) for m in report.measures if m.name in _HIDDEN}
    if hidden := counted.get("baseline_hidden"):
        tail += style.say(f", {hidden} hidden by the baseline", f"，基线隐藏 {hidden} 个")
    if low := counted.get("low_hidden"):
        tail += style.say(
            f"; {low} LOW not shown (--low shows them)",
            f"；另有 {low} 个低级别问题未显示（--low 可显示）",
        )
    stop = style.say(".", "。")
    if not total:
        none = style.say("No findings", "没有发现问题")
        if counted.get("low_hidden"):
            none = style.say("No HIGH or MEDIUM findings", "没有发现高或中级别的问题")
        nothing = none + _extent(report, style)
        return style.paint(nothing, "green") + tail + stop
    separator = style.say(", ", "，")
    shown = separator.join(
        style.paint(style.say(f"{n} {level}", f"{LEVELS[level].zh} {n}"), SEVERITY_COLOUR[level])
        for level, n in found.items()
        if n
    )
    noun = "finding" if total == 1 else "findings"
    head = style.say(f"{total} {noun} ({shown})", f"{total} 个问题（{shown}）")
    lines = [f"{head}{tail}{stop}", *_next(report, style)]
    return "\n".join(row for line in lines for row in wrapped(line, style.width, "  "))


def _extent(report: Report, style: Style) -> str:
    """What was looked at, when nothing was found: "clean" means little without it."""
    read = {item.name: int(item.value) for item in report.measures if item.tool == report.tool}
    if not {"files", "lines", "rules"} <= read.keys():
        return ""
    files, lines, rules = read["files"], read["lines"], read["rules"]
    nouns = ("file" if files == 1 else "files", "rule" if rules == 1 else "rules")
    return style.say(
        f" in {files} {nouns[0]} ({lines:,} lines, {rules} {nouns[1]})",
        f"（{files} 个文件，{lines:,} 行，{rules} 条规则）",
    )


def _next(report: Report, style: Style) -> list[str]:
    """Commands that say more or fix it, for what is there."""
    own = [item for item in worst_first(report.findings) if item.rule in report.rules]
    if not report.tool.startswith("check") or not own:
        return []
    lines: list[str] = []
    fixable = sum(1 for item in report.findings if item.fix and item.fix.safety == "safe")
    if fixable:
        command = f"torchstone check --diff {printable(report.subject)}".rstrip()
        lines.append(
            style.say(
                f"{fixable} can be fixed safely: {command} shows how, --fix does it.",
                f"其中 {fixable} 个可安全修复：{command} 查看，--fix 应用。",
            )
        )
    first = own[0]
    place = f"{printable(first.path)}:{first.location.line}:{first.location.column}"
    what = printable(first.what.say(style.lang))
    lines.append(style.say(f"Fix first: {place} {what}", f"首先修复：{place} {what}"))
    return [*lines, style.say("Why: ", "原因：") + f"torchstone explain {first.rule}"]
