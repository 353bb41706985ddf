"""Boxes and arrows in layers, each box below everything it depends on."""

from __future__ import annotations

from collections import defaultdict

from torchstone.core.pictures import Graph
from torchstone.core.text import Text
from torchstone.render.draw import _scale
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, joined, printable

_WIDE, _HIGH, _ACROSS, _DOWN = 150, 26, 166, 58
_MOST = 400
_ARROW = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
)


def layers(graph: Graph) -> list[list[str]]:
    """Longest-path layers; what is part of a cycle goes last."""
    known = {vertex.id for vertex in graph.vertices}
    incoming: dict[str, int] = dict.fromkeys((vertex.id for vertex in graph.vertices), 0)
    following: dict[str, list[str]] = defaultdict(list)
    for edge in graph.edges:
        if edge.source in known and edge.target in known and edge.source != edge.target:
            incoming[edge.target] += 1
            following[edge.source].append(edge.target)
    out: list[list[str]] = []
    ready = [name for name, count in incoming.items() if not count]
    placed: set[str] = set()
    while ready:
        out.append(ready)
        placed.update(ready)
        then: list[str] = []
        for name in ready:
            for target in following[name]:
                incoming[target] -= 1
                if not incoming[target]:
                    then.append(target)
        ready = then
    rest = [name for name in incoming if name not in placed]
    return [*out, rest] if rest else out


def text(evidence: Graph, style: Style) -> list[str]:
    labels = {vertex.id: vertex.label for vertex in evidence.vertices}
    lines = [
        printable(f"{style.words(evidence.name)}: {len(evidence.vertices)} × {len(evidence.edges)}")
    ]
    for edge in evidence.edges[:40]:
        middle = f" –{edge.label}→ " if edge.label else " → "
        source, target = (labels.get(end, end) for end in (edge.source, edge.target))
        lines.append(printable(f"  {source}{middle}{target}"))
    if len(evidence.edges) > 40:
        lines.append(style.say("… more: --format json", "… 更多：--format json"))
    return lines


def html(evidence: Graph, style: Style) -> str:
    rows = layers(evidence)
    place: dict[str, tuple[int, int]] = {}
    for y, row in enumerate(rows):
        for x, name in enumerate(row):
            if len(place) < _MOST:
                place[name] = (x * _ACROSS + 8, y * _DOWN + 8)
    groups = sorted({vertex.group for vertex in evidence.vertices})
    parts = [_ARROW]
    for edge in evidence.edges:
        if edge.source in place and edge.target in place:
            (x1, y1), (x2, y2) = place[edge.source], place[edge.target]
            title = f"<title>{escape(edge.label)}</title>" if edge.label else ""
            parts.append(
                f'<path d="M{x1 + _WIDE / 2} {y1 + _HIGH}C{x1 + _WIDE / 2} {y1 + _DOWN},{x2 + _WIDE / 2} '
                f'{y2 - _DOWN + _HIGH},{x2 + _WIDE / 2} {y2}" class="edge" marker-end="url(#tip)">{title}</path>'
            )
    for vertex in evidence.vertices:
        if vertex.id in place:
            x, y = place[vertex.id]
            colour = _scale.SERIES_COLOURS[groups.index(vertex.group) % len(_scale.SERIES_COLOURS)]
            parts.append(
                f'<g><title>{escape(vertex.label)} {escape(vertex.group)}</title><rect x="{x}" y="{y}" rx="4" '
                f'width="{_WIDE}" height="{_HIGH}" fill="{colour}" fill-opacity=".3" stroke="{colour}"/>'
                f'<text x="{x + _WIDE / 2}" y="{y + 17}" text-anchor="middle">{escape(vertex.label[:22])}</text></g>'
            )
    wide = max((len(row) for row in rows), default=1) * _ACROSS + 8
    hidden = len(evidence.vertices) - len(place)
    folded = Text(
        f" ({hidden} boxes folded: --format json)", f"（折叠 {hidden} 个节点：--format json）"
    )
    caption = markup(joined(evidence.name, folded if hidden else ""))
    return (
        f'<figure class="graph"><figcaption>{caption}</figcaption><div class="scroll">'
        f'<svg role="img" aria-label="{escape(style.words(evidence.name))}" width="{wide}" height="{len(rows) * _DOWN}" '
        f'viewBox="0 0 {wide} {len(rows) * _DOWN}">{"".join(parts)}</svg></div></figure>'
    )
