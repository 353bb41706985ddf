"""Things to do, the first one first, each with the command that does it."""

from __future__ import annotations

from torchstone.core.pictures import Task, Tasks
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, printable
from torchstone.render.words import COLOURS, MARKS


def text(evidence: Tasks, style: Style) -> list[str]:
    out = [printable(style.words(evidence.name))]
    for number, item in enumerate(evidence.tasks, 1):
        state = style.words(item.state_name)
        tail = f"  [{printable(state)}]" if state else ""
        out.append(f"{number}. {printable(style.words(item.title))}")
        facts = " · ".join(printable(style.words(fact)) for fact in item.facts)
        mark = style.paint(f"{MARKS[item.state]}{tail}", COLOURS[item.state])
        out.append(f"   {printable(item.where)}  {facts}  {mark}".rstrip())
        if item.command:
            out.append(f"   $ {printable(item.command)}")
    return out


def html(evidence: Tasks, style: Style) -> str:
    items = "".join(_item(item) for item in evidence.tasks)
    return (
        f'<div class="tasks"><p class="caption">{markup(evidence.name)}</p><ol>{items}</ol></div>'
    )


def _item(item: Task) -> str:
    facts = "".join(f"<li>{markup(fact)}</li>" for fact in item.facts)
    state = (
        f'<li class="{item.state}">{MARKS[item.state]} {markup(item.state_name)}</li>'
        if item.state_name
        else ""
    )
    command = (
        f'<p><span class="run" data-copy="{escape(item.command, quote=True)}"><code>{escape(item.command)}</code></span></p>'
        if item.command
        else ""
    )
    return (
        f'<li><p><b>{markup(item.title)}</b> <code class="where">{escape(item.where)}</code></p>'
        f'<ul class="facts">{state}{facts}</ul>{command}</li>'
    )
