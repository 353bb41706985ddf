"""A chart in a page: its data as JSON, drawn by the script of the page, and a text without it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from torchstone.core.text import Words, words
from torchstone.render.markup import markup
from torchstone.render.style import joined, printable

_DIGITS = 6
"""Significant digits of a number in a page: more cannot be seen, and make pages large."""
Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]


def figure(kind: str, name: Words, how: Words, data: Mapping[str, Json], lines: list[str]) -> str:
    """The frame of a chart. `lines` are shown where no script runs."""
    caption = markup(joined(name, *((" – ", how) if words(how, "en") else ())))
    fallback = "".join(f"{_plain(line)}\n" for line in lines)
    return (
        f'<figure data-kind="{kind}"><figcaption>{caption}</figcaption><div class="canvas"></div>'
        f'<script type="application/json">{_encoded({"name": said(name), **data})}</script>'
        f"<noscript><pre>{fallback}</pre></noscript></figure>"
    )


def said(value: Words) -> Json:
    """Words in both languages, or once where they are the same."""
    if isinstance(value, str):
        return value
    return value.en if value.en == value.zh else {"en": value.en, "zh": value.zh}


def point(value: float | None) -> Json:
    """A number with as many digits as can be seen; what is none, by its name."""
    if value is None:
        return None
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.{_DIGITS}g}")


def points(values: Sequence[float | None]) -> list[Json]:
    return [point(value) for value in values]


def _encoded(data: Json) -> str:
    """JSON that no text in it can end: < > & stand as their numbers."""
    text = json.dumps(_shown(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _shown(data: Json) -> Json:
    """The same data with every character that would act named instead."""
    if isinstance(data, str):
        return data if data.isprintable() else printable(data)
    if isinstance(data, Mapping):
        return {key: _shown(item) for key, item in data.items()}
    if isinstance(data, Sequence):
        return [_shown(item) for item in data]
    return data


def _plain(line: str) -> str:
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
