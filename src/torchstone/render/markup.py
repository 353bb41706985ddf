"""Words as HTML, both languages side by side."""

from __future__ import annotations

import html
import re

from torchstone.core.text import Message, Text, Words
from torchstone.render.style import named

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control characters, and those that turn, hide or smuggle what stands beside them."""


def escape(text: str, quote: bool = True) -> str:
    """Text as HTML that only shows it: no markup, and no character that acts on others."""
    return html.escape(_ACTING.sub(lambda found: named(found[0]), text), quote)


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
