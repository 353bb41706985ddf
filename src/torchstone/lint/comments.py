"""`# torchstone: ignore[rule] reason` on a finding's line, or alone on the line above."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchstone.core.pattern import pattern
from torchstone.core.text import Message, Text
from torchstone.sources.source import Source

MARK = b"torchstone:"
_COMMENT = pattern(
    r"#\s*torchstone:\s*(?P<verb>ignore-file|ignore)\b\s*(?:\[(?P<rules>[^\]]*)\])?\s*(?P<reason>.*)"
)
_OTHER_SPELLING = pattern(
    r"#\s*(?P<mark>noqa\b(?:\s*:\s*TS\d+|(?!\s*:))|torchstone:\s*(?:ignore|disable|noqa)\b(?!-file)(?!\s*\[\s*\w)[^#]{0,20})"
)


@dataclass
class Ignore:
    """One comment that silences rules."""

    line: int
    column: int
    end_column: int
    rules: tuple[str, ...]
    reason: str
    whole_file: bool
    covers: int
    """The line it speaks of: its own, or the next one of code when it stands alone."""
    used: set[str] = field(default_factory=set)


def read_ignores(source: Source) -> list[Ignore]:
    """The comments of a file; text inside strings is no comment."""
    import io  # only files with such a comment pay for the tokenizer
    import tokenize

    found: list[Ignore] = []
    lines = source.lines()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source.text).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return []
    for token in tokens:
        if token.type != tokenize.COMMENT or not (match := _COMMENT.match(token.string)):
            continue
        line, column = token.start
        names = tuple(n.strip().lower() for n in (match["rules"] or "").split(",") if n.strip())
        alone = not lines[line - 1][:column].strip()
        covers = _next_code(lines, line) if alone else line
        whole = match["verb"] == "ignore-file"
        found.append(Ignore(line, column, token.end[1], names, match["reason"], whole, covers))
    return found


def with_right_comment(remedy: Message, rule: str, line: str) -> Message:
    """The remedy with the comment to write, where one on the line looks like it and has no effect."""
    match = _OTHER_SPELLING.search(line) if "#" in line else None
    if not match:
        return remedy
    written, right = f"# {match['mark'].strip()}", f"# torchstone: ignore[{rule}]"
    said = Text(
        f"{remedy.say('en')} (`{written}` does not silence it; that takes `{right} reason`)",
        f"{remedy.say('zh')}（`{written}` 不能屏蔽它；应写 `{right} 原因`）",
    )
    return Message(remedy.id, said)


def _next_code(lines: list[str], line: int) -> int:
    for number in range(line + 1, len(lines) + 1):
        text = lines[number - 1].strip()
        if text and not text.startswith("#"):
            return number
    return line
