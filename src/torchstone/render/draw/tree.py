"""A weighted tree: bars in the terminal, a flame graph in a page."""

from __future__ import annotations

from collections import Counter

from torchstone.core.pictures import Branch, Tree
from torchstone.core.quantity import human
from torchstone.render.draw._figure import Json, figure, point
from torchstone.render.style import Style, printable, wrapped_inside

_LINES, _DEPTH = 40, 12
_DEEPEST = 60


def text(evidence: Tree, style: Style) -> list[str]:
    total = evidence.root.value or 1.0
    whole = human(evidence.root.value, evidence.unit)
    head = f"{style.words(evidence.name)}: {whole} ({style.words(evidence.how)})"
    lines = wrapped_inside(head, style)
    stack: list[tuple[Branch, int]] = [(evidence.root, 0)]
    while stack and len(lines) <= _LINES:
        branch, depth = stack.pop()
        share = branch.value / total
        bar = "█" * max(round(share * 20), 1)
        value = human(branch.value, evidence.unit)
        lines.append(printable(f"{share:6.1%} {bar:<20} {'  ' * depth}{_named(branch)} {value}"))
        if depth < _DEPTH:
            stack += [
                (child, depth + 1) for child in sorted(branch.children, key=lambda c: c.value)
            ]
    if stack:
        lines.append(style.say("… more: --format json", "… 更多：--format json"))
    return lines


def _named(branch: Branch) -> str:
    shown = branch.group and branch.group != branch.name
    return f"{branch.name} ({branch.group})" if shown else branch.name


def html(evidence: Tree, style: Style) -> str:
    weights: Counter[str] = Counter()
    data: dict[str, Json] = {
        "root": _node(evidence.root, weights, 0),
        "unit": evidence.unit,
        "groups": [name for name, _ in weights.most_common()],
    }
    return figure("tree", evidence.name, evidence.how, data, text(evidence, style))


def _node(branch: Branch, weights: Counter[str], depth: int) -> Json:
    own = branch.value - sum(child.value for child in branch.children)
    if branch.group:
        weights[branch.group] += max(int(own), 1)
    node: dict[str, Json] = {"n": printable(branch.name), "v": point(branch.value)}
    if branch.group:
        node["g"] = printable(branch.group)
    if branch.children and depth < _DEEPEST:
        node["c"] = [_node(child, weights, depth + 1) for child in branch.children]
    return node
