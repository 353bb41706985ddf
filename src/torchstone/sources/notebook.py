"""Notebooks as source: code cells one after the other, magics and broken cells blanked out."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from torchstone.core.fix import Edit, apply_edits
from torchstone.core.gap import Gap
from torchstone.core.lines import split_lines
from torchstone.core.pattern import pattern
from torchstone.sources.source import Source, gap

_MAGIC = pattern(r"^\s*(?:[%!?]|[\w., ]+=\s*[%!])|^[^#'\"]*[^\s#'\"]\?{1,2}\s*$")
_STRINGS = pattern(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
# magics and commands that IPython takes without a percent sign; a name that is assigned is none
_AUTOMAGIC = pattern(
    r"^(?:cd|ls|pwd|mkdir|rm|cp|mv|cat|pip|conda)(?:[ \t]+[^\s=(.,\[:+*/-][^=]*|[ \t]+[-./~][^=]*)?$"
)


def read_notebook(text: str, path: str) -> tuple[Source | None, list[Gap]]:
    """The notebook's code as one module; every cell keeps its own line numbers."""
    cells = _cells(text)
    if isinstance(cells, str):
        reason = f"no notebook: {cells}"
        close = f"jupyter nbconvert --to notebook {path}"
        return None, [gap(path, "notebook.broken", reason, f"不是有效的 notebook：{cells}", close)]
    parts: list[str] = []
    starts: list[int] = []
    numbers: list[int] = []
    gaps: list[Gap] = []
    line = 1
    for number, cell in enumerate(cells, 1):
        if cell.get("cell_type") != "code":
            continue
        source = plain_python(_joined(cell.get("source", "")))
        try:
            compile(source, path, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            at = getattr(error, "lineno", None) or 1
            what = getattr(error, "msg", None) or type(error).__name__
            gaps.append(
                gap(
                    path,
                    "source.syntax",
                    f"cell {number} does not parse: {what}",
                    f"第 {number} 个单元格无法解析：{what}",
                    "fix the cell",
                    line=at,
                    cell=number,
                )
            )
            source = "\n" * (len(split_lines(source)) - 1)
        source += "" if source.endswith("\n") else "\n"
        starts.append(line)
        numbers.append(number)
        parts.append(source)
        line += len(split_lines(source))
    return Source(path, "".join(parts), tuple(starts), tuple(numbers)), gaps


def plain_python(source: str) -> str:
    """The cell with IPython magics blanked, line for line."""
    lines = split_lines(source)
    if _is_indented(lines):
        return "".join(_blank(line, code=False) for line in lines)
    if lines and lines[0].lstrip().startswith("%%"):
        magic = lines[0].split()[0]
        if magic not in ("%%time", "%%timeit", "%%capture", "%%prun", "%%memit"):
            return "".join(_blank(line, code=False) for line in lines)
        lines[0] = _blank(lines[0], code=False)
    found: list[str] = []
    goes_on = False  # a command of the shell may go on in the next line, as in a shell
    begun = False  # before the first statement the indentation of a magic means nothing
    continued, depth = False, 0  # a line of Python that goes on: what follows is no magic
    for line in lines:
        command = _MAGIC.match(line) is not None or _AUTOMAGIC.match(line) is not None
        hidden = goes_on or (not continued and command)
        shown = line if begun else line.lstrip(" \t")
        found.append(_blank(shown, code=not goes_on) if hidden else line)
        begun = begun or not (hidden or not line.strip())
        slash = line.rstrip("\r\n").endswith("\\")
        goes_on = hidden and slash
        depth = 0 if hidden else depth + _opened(line)
        continued = not hidden and (slash or depth > 0)
    return "".join(found)


def _opened(line: str) -> int:
    """How many brackets a line opens and does not close; those in strings and comments do not count."""
    code = _STRINGS.sub("", line).partition("#")[0]
    return sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))


def _is_indented(lines: list[str]) -> bool:
    """Whether a whole cell is indented: IPython takes that away. Places would shift with it, so the cell
    is left unread."""
    first = next((line for line in lines if line.strip()), "")
    return first[:1] in (" ", "\t") and not _MAGIC.match(first)


def _blank(line: str, code: bool) -> str:
    body = line.rstrip("\r\n")
    indent = body[: len(body) - len(body.lstrip())]
    return (indent + "pass" if code else "") + line[len(body) :]


def _cells(text: str) -> list[dict[str, Any]] | str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON ({error})"
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return "no list of cells"
    return cells


def _joined(source: Any) -> str:
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


def edit_notebook(text: str, edits: list[Edit]) -> str:
    """The notebook with edits made inside its cells; every other character stays as it was."""
    by_cell: dict[int, list[Edit]] = {}
    for edit in edits:
        by_cell.setdefault(edit.cell, []).append(edit)
    cells = _member(text, _skip(text, 0), "cells")
    for number in sorted(by_cell, reverse=True):  # from the end, so that places stay right
        start, end = _member(text, _element(text, cells[0], number - 1)[0], "source")
        old = json.loads(text[start:end])
        source = apply_edits(_joined(old), by_cell[number])
        text = text[:start] + _written(source, text[start:end], isinstance(old, list)) + text[end:]
    return text


def _written(source: str, old: str, as_list: bool) -> str:
    """A cell's source in the style of what stood there."""
    plain = old.isascii() and "\\u" in old
    if not as_list:
        return json.dumps(source, ensure_ascii=plain)
    rows = [json.dumps(row, ensure_ascii=plain) for row in split_lines(source)]
    opening = re.match(r"\[\s*", old)
    closing = re.search(r"\s*\]\Z", old)
    start = opening[0] if opening else "["
    between = start[1:] or (" " if '", "' in old else "")
    return start + f",{between}".join(rows) + (closing[0] if closing else "]")


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _value_end(text: str, at: int) -> int:
    return json.JSONDecoder(strict=False).raw_decode(text, at)[1]


def _member(text: str, at: int, key: str) -> tuple[int, int]:
    """The span of one value of the JSON object that starts here."""
    at = _skip(text, at + 1)
    while text[at] == '"':
        name, at = json.JSONDecoder(strict=False).raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        end = _value_end(text, at)
        if name == key:
            return at, end
        at = _skip(text, _skip(text, end) + 1)
    raise ValueError(f"no {key}")


def _element(text: str, at: int, index: int) -> tuple[int, int]:
    """The span of one value of the JSON array that starts here."""
    at = _skip(text, at + 1)
    for _ in range(index):
        at = _skip(text, _skip(text, _value_end(text, at)) + 1)
    return at, _value_end(text, at)
