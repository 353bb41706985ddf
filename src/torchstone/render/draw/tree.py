"""A weighted tree: bars in the terminal, a flame graph in a page."""

from __future__ import annotations

from torchstone.core.pictures import Branch, Tree
from torchstone.core.quantity import human
from torchstone.render.draw import _scale
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, joined, printable

_LINES, _DEPTH, _ROW = 40, 12, 18


def text(evidence: Tree, style: Style) -> list[str]:
    total = evidence.root.value or 1.0
    whole = human(evidence.root.value, evidence.unit)
    head = f"{style.words(evidence.name)}: {whole} ({style.words(evidence.how)})"
    lines = [printable(head)]
    stack: list[tuple[Branch, int]] = [(evidence.root, 0)]
    while stack and len(lines) <= _LINES:
        branch, depth = stack.pop()
        share = branch.value / total
        bar = "█" * max(round(share * 20), 1)
        value = human(branch.value, evidence.unit)
        lines.append(printable(f"{share:6.1%} {bar:<20} {'  ' * depth}{branch.name} {value}"))
        if depth < _DEPTH:
            stack += [
                (child, depth + 1) for child in sorted(branch.children, key=lambda c: c.value)
            ]
    if stack:
        lines.append(style.say("… more: --format json", "… 更多：--format json"))
    return lines


def html(evidence: Tree, style: Style) -> str:
    parts: list[str] = []
    deepest = 0
    stack: list[tuple[Branch, int, float, float]] = [(evidence.root, 0, 0.0, float(_scale.WIDTH))]
    total = evidence.root.value or 1.0
    while stack:
        branch, depth, x, width = stack.pop()
        if width < 0.4 or depth > 60:
            continue
        deepest = max(deepest, depth)
        colour = _scale.SERIES_COLOURS[(len(branch.name) + depth) % len(_scale.SERIES_COLOURS)]
        title = f"{branch.name}: {human(branch.value, evidence.unit)} ({branch.value / total:.1%})"
        label = escape(branch.name[: int(width / 7)]) if width > 24 else ""
        parts.append(
            f'<g><title>{escape(title)}</title><rect x="{x:.1f}" y="{depth * _ROW}" width="{max(width - 0.5, 0.3):.1f}" '
            f'height="{_ROW - 1}" fill="{colour}" fill-opacity=".55"/>'
            f'<text x="{x + 3:.1f}" y="{depth * _ROW + 13}">{label}</text></g>'
        )
        at = x
        for child in branch.children:
            share = child.value / (branch.value or 1.0) * width
            stack.append((child, depth + 1, at, share))
            at += share
    total_shown = f": {human(evidence.root.value, evidence.unit)} – "
    caption = markup(joined(evidence.name, total_shown, evidence.how))
    return (
        f'<figure class="flame"><figcaption>{caption}</figcaption>'
        f'<svg role="img" aria-label="{escape(style.words(evidence.name))}" '
        f'viewBox="0 0 {_scale.WIDTH} {(deepest + 1) * _ROW}">{"".join(parts)}</svg></figure>'
    )
