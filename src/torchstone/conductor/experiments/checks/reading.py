"""Checks of a folder: a Python file each, whose docstring says what it claims of which line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from torchstone.conductor.experiments.checks.check import MOST_CHARACTERS, Check, make_check
from torchstone.core.errors import InputError, UsageError
from torchstone.core.files import read_regular
from torchstone.core.text import Text

_KEY = re.compile(r"^(place|severity)\s*:\s*(.+)$", re.MULTILINE)
_FORM = Text(
    'a docstring with the claim, then "place: FILE:LINE" and, if you like, "severity: HIGH"',
    "文档字符串：先写论断，再写 “place: 文件:行号”，可选 “severity: HIGH”",
)


def read_checks(folder: str, root: Path) -> tuple[Check, ...]:
    """Every check of a folder, in order of name; what is not one is an error that names the file."""
    place = Path(folder)
    if not place.is_dir():
        raise UsageError(
            "--checks",
            repr(folder),
            Text("a folder with checks", "含有检查的文件夹"),
            Text("see docs/checks.md", "参见 docs/zh/checks.md"),
        )
    files = sorted(
        path for path in place.glob("*.py") if not path.name.startswith(("_", "conftest"))
    )
    return tuple(_read(path, root) for path in files)


def _read(path: Path, root: Path) -> Check:
    code = read_regular(path, 4 * MOST_CHARACTERS).decode("utf-8", "replace")
    try:
        text = ast.get_docstring(ast.parse(code)) or ""
    except (SyntaxError, ValueError, RecursionError) as error:
        raise _bad(path, f"a file that does not parse ({error})") from None
    keys = dict(_KEY.findall(text))
    where, _, line = keys.get("place", "").strip().rpartition(":")
    claim = _KEY.sub("", text).strip().partition("\n\n")[0]
    if not where or not line.isdecimal() or not claim:
        raise _bad(path, "a file without a claim and a place")
    severity = keys.get("severity", "MEDIUM").strip().upper()
    return make_check(where, int(line), claim, severity, code, "person", root)


def _bad(path: Path, given: str) -> InputError:
    return InputError(str(path), given, _FORM, Text("see docs/checks.md", "参见 docs/zh/checks.md"))
