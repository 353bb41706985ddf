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
                    "mend the cell",
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
    if lines and lines[0].lstrip().startswith("%%"):
        magic = lines[0].split()[0]
        if magic not in ("%%time", "%%timeit", "%%capture", "%%prun", "%%memit"):
            return "".join(_blank(line, code=False) for line in lines)
        lines[0] = _blank(lines[0], code=False)
    return "".join(_blank(line, code=True) if _MAGIC.match(line) else line for line in lines)


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
    """The notebook with edits made inside its cells; everything else stays as it was."""
    data = json.loads(text)
    by_cell: dict[int, list[Edit]] = {}
    for edit in edits:
        by_cell.setdefault(edit.cell, []).append(edit)
    for number, group in by_cell.items():
        cell = data["cells"][number - 1]
        source = apply_edits(_joined(cell["source"]), group)
        cell["source"] = split_lines(source) if isinstance(cell["source"], list) else source
    indent = re.match(r"\{\s*\n(\s+)", text)
    ending = "\n" if text.endswith("\n") else ""
    ascii_only = text.isascii()
    width = len(indent.group(1)) if indent else None
    return json.dumps(data, ensure_ascii=ascii_only and "\\u" in text, indent=width) + ending
