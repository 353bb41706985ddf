"""Source lines with the place that matters marked."""

from __future__ import annotations

from torchstone.core.evidence import Snippet
from torchstone.render.style import Style, cells, printable


def text(evidence: Snippet, style: Style) -> list[str]:
    rows = evidence.text.split("\n")
    last = evidence.line + len(rows) - 1
    gutter = max(len(str(last)), 2)
    out: list[str] = []
    for number, row in enumerate(rows, evidence.line):
        shown = printable(row.expandtabs(4))
        marked = number == evidence.mark_line
        line_number = style.paint(f"{number:>{gutter}} |", "bold" if marked else "dim")
        out.append(f"{line_number} {shown}".rstrip())
        if marked and evidence.mark_end > evidence.mark_start:
            before = cells(printable(row[: evidence.mark_start].expandtabs(4)))
            inside = cells(printable(row[evidence.mark_start : evidence.mark_end]))
            carets = style.paint("^" * max(inside, 1), "red")
            out.append(f"{style.paint(' ' * gutter + ' |', 'dim')} {' ' * before}{carets}")
    return out


def html(evidence: Snippet, style: Style) -> str:
    from torchstone.render.draw._syntax import coloured  # the terminal does without it

    rows: list[str] = []
    for number, row in enumerate(evidence.text.split("\n"), evidence.line):
        css = ""
        start, end = (0, 0)
        if number == evidence.mark_line:
            css, start, end = ' class="marked"', evidence.mark_start, evidence.mark_end
        parts = [coloured(part) for part in (row[:start], row[start:end], row[end:])]
        body = f"{parts[0]}<mark>{parts[1]}</mark>{parts[2]}" if end > start else coloured(row)
        rows.append(f"<span{css}><b>{number}</b>{body}\n</span>")
    return f'<pre class="snippet">{"".join(rows)}</pre>'
