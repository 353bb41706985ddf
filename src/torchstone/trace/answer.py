"""What a model answered: the code and its description, or nothing that can be read as such."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

UNREAD = "# torchstone: this answer could not be read as code; it is kept as it came\n"
_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)```", re.S)
_MOST = 4_000_000


class Answer(NamedTuple):
    """Code with its description."""

    code: str
    description: str = ""

    def text(self) -> str:
        """As it stands in `result.txt`."""
        return f"{self.code}\n\n\n'''\n{self.description}\n'''"


def read_answer(text: str) -> Answer | None:
    """The code in an answer: JSON with `code` and `description`, alone, fenced or within other
    words; else a single fenced block; else None."""
    if len(text) > _MOST:
        return None
    for candidate in _candidates(text):
        try:
            data = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and isinstance(data.get("code"), str) and data["code"].strip():
            return Answer(data["code"], str(data.get("description", "")))
    blocks = [block for block in _FENCE.findall(text) if block.strip()]
    if len(blocks) == 1 and not blocks[0].lstrip().startswith("{"):
        rest = _FENCE.sub("", text).strip()
        return Answer(blocks[0].rstrip("\n"), rest)
    return None


def _candidates(text: str) -> list[str]:
    found = [text.strip(), *(block.strip() for block in _FENCE.findall(text))]
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        found.append(text[start : end + 1])
    return [item for item in found if item.startswith("{")]
