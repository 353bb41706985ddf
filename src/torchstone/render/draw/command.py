"""A command that was run, or that would show more."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.render.markup import escape
from torchstone.render.style import Style, printable


def text(evidence: Command, style: Style) -> list[str]:
    code = "" if evidence.exit_code is None else f"  [exit {evidence.exit_code}]"
    out = [printable(f"$ {evidence.line}{code}")]
    return out + [printable(row) for row in evidence.output.rstrip("\n").split("\n") if row][:20]


def html(evidence: Command, style: Style) -> str:
    code = "" if evidence.exit_code is None else f" <small>exit {evidence.exit_code}</small>"
    output = f"\n{escape(evidence.output)}" if evidence.output else ""
    return (
        f'<div data-copy="{escape(evidence.line, quote=True)}"><pre class="command">'
        f"<b>$ {escape(evidence.line)}</b>{code}{output}</pre></div>"
    )
