"""Published models by the names that people use: `llama-3-8b`, `Qwen/Qwen2.5-7B-Instruct`."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

_ENDINGS = re.compile(
    r"-(instruct|chat|it|base|hf|preview|bnb-4bit|gptq|awq|fp8|v\d+(\.\d+)*|\d{4})$"
)
"""Of names that have the same sizes: what a model was trained for later, and how it was stored."""
_FAMILIES = ((re.compile(r"^meta-llama-"), "llama-"), (re.compile(r"^llama(\d)"), r"llama-\1"))
"""Spellings of one family."""


@dataclass(frozen=True, slots=True)
class Published:
    """One row of the table."""

    title: str
    type: str
    """Model type of transformers."""
    parameters: int
    config: dict[str, Any] = field(default_factory=dict)


def published_model(name: str) -> Published | None:
    """The row of a name; None where the table has none."""
    short = short_name(name)
    return _table().get(short)


def short_name(name: str) -> str:
    """Without the maker, case and endings that say nothing about sizes."""
    short = name.rpartition("/")[2].lower().replace("_", "-")
    for pattern, plain in _FAMILIES:
        short = pattern.sub(plain, short)
    while short not in _table() and (match := _ENDINGS.search(short)):
        short = short[: match.start()]
    return short


def published_names() -> list[str]:
    return list(_table())


@functools.cache
def _table() -> dict[str, Published]:
    text = resources.files(__package__).joinpath("published.toml").read_text("utf-8")
    return {
        name: Published(row["title"], row["type"], row["parameters"], row.get("config", {}))
        for row in tomllib.loads(text)["models"]
        for name in row["names"]
    }
