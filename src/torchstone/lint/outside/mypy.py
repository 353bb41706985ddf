"""mypy's errors as findings."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from torchstone.core.files import cache_folder
from torchstone.core.finding import Finding, Location, Severity
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.lint.outside import _process
from torchstone.lint.outside._finding import foreign, shown
from torchstone.lint.outside._mypy_settings import MypySettings, safe_settings

NAME = "mypy"
_FLAGS = ("--output=json", "--no-error-summary", "--hide-error-context")


def run(paths: list[str], allow_plugins: bool = False) -> Report:
    """mypy with the project's settings; what they would run is left out unless it is allowed."""
    program = _process.program(NAME)
    if program is None:
        return Report(NAME, gaps=(_process.missing(NAME),))
    settings = MypySettings() if allow_plugins else safe_settings(Path.cwd())
    with tempfile.TemporaryDirectory() as folder:
        chosen = [] if allow_plugins else _kept_apart(settings, Path(folder))
        code, out, err = _checked(program, [*chosen, *_FLAGS, "--", *paths])
    findings = tuple(found for line in out.splitlines() if (found := _read(line)) is not None)
    gaps = [_not_run(settings.plugins, paths)] if settings.plugins else []
    if code not in (0, 1) or (code == 1 and not findings):
        gaps.append(_process.failed(NAME, _why(out, err, code), f"mypy {' '.join(paths)}"))
    return Report(NAME, findings, gaps=tuple(gaps))


def _checked(program: list[str], words: list[str]) -> tuple[int, str, str]:
    code, out, err = _process.run([*program, *words])
    if code not in (0, 1) and "Duplicate module named" in out:
        # scripts of one name in several folders: told apart by where they lie
        return _process.run([*program, "--explicit-package-bases", *words])
    return code, out, err


def _kept_apart(settings: MypySettings, folder: Path) -> list[str]:
    """Settings from a file of ours, and the cache outside the analysed tree."""
    path = folder / "mypy.ini"
    path.write_text(settings.text or "[mypy]\n", encoding="utf-8")
    return [f"--config-file={path}", f"--cache-dir={cache_folder() / 'mypy'}"]


def _not_run(plugins: tuple[str, ...], paths: list[str]) -> Gap:
    names = ", ".join(plugins)[:200]
    reason = Text(
        f"the project's mypy plugins are code and were not run: {names}",
        f"项目配置的 mypy 插件属于代码，未运行：{names}",
    )
    close = f"torchstone check --with mypy --allow-plugins {' '.join(paths)}"
    return Gap(NAME, Message("outside.plugins", reason), close, tool=NAME)


def _why(out: str, err: str, code: int) -> str:
    """The last thing it said, without the form in which it said it."""
    last = (err.strip() or out.strip() or f"exit {code}").splitlines()[-1]
    try:
        return str(json.loads(last)["message"])
    except (ValueError, KeyError, TypeError):
        return last


def _read(line: str) -> Finding | None:
    try:
        row = json.loads(line)
        if row["severity"] == "note":
            return None
        where = Location(shown(row["file"]), int(row["line"]), max(int(row["column"]), 0) + 1)
        return foreign(NAME, row.get("code") or "", Severity.MEDIUM, str(row["message"]), where)
    except (ValueError, KeyError, TypeError):
        return None
