"""Words as HTML, both languages side by side."""

from __future__ import annotations

from html import escape

from torchstone.core.text import Message, Text, Words


def markup(value: Words | Message) -> str:
    """Both languages for a page, which shows the one its reader chose."""
    if isinstance(value, Message):
        value = Text(value.say("en"), value.say("zh"))
    if isinstance(value, str) or value.en == value.zh:
        return _with_code(value if isinstance(value, str) else value.en)
    en, zh = _with_code(value.en), _with_code(value.zh)
    return f'<span lang="en">{en}</span><span lang="zh">{zh}</span>'


def _with_code(text: str) -> str:
    """Escaped, with what stands between backticks as code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
