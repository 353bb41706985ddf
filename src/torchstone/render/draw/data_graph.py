"""A graph of operators: its folded classes in the terminal; boxes, search and a table in a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from torchstone.core.pictures import DataGraph, DataVertex
from torchstone.core.quantity import human
from torchstone.render.draw._figure import Json, figure, point, said
from torchstone.render.style import Style, printable

_LINES = 24
_WIDEST = 44


def text(evidence: DataGraph, style: Style) -> list[str]:
    """The slowest classes, each with what it feeds."""
    classes: dict[int, list[int]] = defaultdict(list)
    for place, vertex in enumerate(evidence.vertices):
        classes[vertex.fold].append(place)
    feeds: dict[int, dict[int, None]] = defaultdict(dict)
    for link in evidence.links:
        source, target = (evidence.vertices[end].fold for end in (link.source, link.target))
        feeds[source][target] = None
    names = {
        fold: _named(evidence.vertices[places[0]], len(places)) for fold, places in classes.items()
    }
    total = sum(vertex.seconds for vertex in evidence.vertices) or 1.0
    count = style.say(
        f"{len(evidence.vertices):,} operators in {len(classes):,} classes",
        f"{len(evidence.vertices):,} 个算子，{len(classes):,} 类",
    )
    lines = [printable(f"{style.words(evidence.name)}: {count}")]
    seconds = {
        f: sum(evidence.vertices[p].seconds for p in places) for f, places in classes.items()
    }
    for fold in sorted(classes, key=lambda one: -seconds[one])[:_LINES]:
        after = ", ".join(names[other] for other in feeds[fold])
        arrow = f" → {after}" if after else ""
        share = f"{seconds[fold] / total:6.1%}"
        time = human(seconds[fold], "s")
        lines.append(printable(f"  {share} {time:>9}  {names[fold]:<{_WIDEST}}{arrow}").rstrip())
    if len(classes) > _LINES:
        lines.append(style.say("  … more: --format html", "  … 更多：--format html"))
    return lines


def _named(vertex: DataVertex, count: int) -> str:
    return f"{vertex.label} ×{count:,}" if count > 1 else vertex.label


def html(evidence: DataGraph, style: Style) -> str:
    labels = _Table(vertex.label for vertex in evidence.vertices)
    places = _Table(vertex.place for vertex in evidence.vertices)
    stages = max((len(vertex.devices) for vertex in evidence.vertices), default=0)
    devices = _Table(device for vertex in evidence.vertices for device in vertex.devices)
    data: dict[str, Json] = {
        "labels": labels.words,
        "places": places.words,
        "devices": devices.words,
        "l": [labels.place(vertex.label) for vertex in evidence.vertices],
        "p": [places.place(vertex.place) for vertex in evidence.vertices],
        "f": [vertex.fold for vertex in evidence.vertices],
        "s": [point(vertex.seconds) for vertex in evidence.vertices],
        "b": [vertex.nbytes for vertex in evidence.vertices],
        "d": [[devices.place(vertex.devices[stage]) if stage < len(vertex.devices) else -1 for vertex in evidence.vertices] for stage in range(stages)],
        "e": [end for link in evidence.links for end in (link.source, link.target)],
        "stages": [said(stage) for stage in evidence.stages],
    }  # fmt: skip
    return figure("data_graph", evidence.name, evidence.how, data, text(evidence, style))


class _Table:
    """Words that are named by their place: a graph has few names and many nodes."""

    def __init__(self, words: Iterable[str]) -> None:
        self._places: dict[str, int] = {}
        for word in words:
            self._places.setdefault(word, len(self._places))

    @property
    def words(self) -> list[Json]:
        return [printable(word) for word in self._places]

    def place(self, word: str) -> int:
        return self._places[word]
