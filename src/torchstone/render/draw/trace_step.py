"""One step of a recorded run."""

from __future__ import annotations

from torchstone.core.pictures import TraceStep
from torchstone.render.markup import escape
from torchstone.render.style import Style, printable


def _shown(evidence: TraceStep) -> str:
    tail = f" – {evidence.summary}" if evidence.summary else ""
    return f"{evidence.run} S{evidence.step:02d} {evidence.action}{tail}"


def text(evidence: TraceStep, style: Style) -> list[str]:
    return [printable(_shown(evidence))]


def html(evidence: TraceStep, style: Style) -> str:
    return f'<p class="step">{escape(_shown(evidence))}</p>'
