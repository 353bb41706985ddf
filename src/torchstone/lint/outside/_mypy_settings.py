"""The project's mypy settings without what would run or write something: plugins, programs, reports."""

from __future__ import annotations

import configparser
import io
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FILES = ("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg")
"""In the order in which mypy looks for them."""
_RUNS_OR_WRITES = frozenset({
    "plugins", "python_executable", "mypy_path", "custom_typeshed_dir", "custom_typing_module",
    "cache_dir", "sqlite_cache", "junit_xml", "shadow_file", "config_file", "install_types",
    "non_interactive", "pdb", "files", "packages", "modules",
})  # fmt: skip
"""`plugins` and `python_executable` are code that mypy starts; paths lead it out of the project; the
rest writes files or chooses what is checked, which is the caller's business."""
Section = dict[str, str]


@dataclass(frozen=True)
class MypySettings:
    """Settings that only change what mypy says, and the names of plugins that were left out."""

    text: str = ""
    plugins: tuple[str, ...] = ()


def safe_settings(folder: Path) -> MypySettings:
    """Those of the folder, or of one above it within the repository; nothing is imported or run."""
    for place in (folder, *folder.parents):
        for name in _FILES:
            sections = _sections(place / name)
            if sections:
                return _without_code(sections)
        if (place / ".git").exists():
            break
    return MypySettings()


def _without_code(sections: dict[str, Section]) -> MypySettings:
    plugins = sections.get("mypy", {}).get("plugins", "")
    kept = configparser.RawConfigParser()
    for section, settings in sections.items():
        kept[section] = {
            key: value
            for key, value in settings.items()
            if key not in _RUNS_OR_WRITES and not key.endswith("_report")
        }
    written = io.StringIO()
    kept.write(written)
    names = plugins.replace("\n", ",").split(",")
    return MypySettings(written.getvalue(), tuple(name.strip() for name in names if name.strip()))


def _sections(path: Path) -> dict[str, Section]:
    """The sections about mypy of a file; a file that cannot be read has none."""
    try:
        text = path.read_text(encoding="utf-8")
        return _of_toml(tomllib.loads(text)) if path.suffix == ".toml" else _of_ini(text)
    except (
        OSError,
        UnicodeDecodeError,
        tomllib.TOMLDecodeError,
        configparser.Error,
        RecursionError,
    ):
        return {}


def _of_ini(text: str) -> dict[str, Section]:
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    return {
        name: dict(parser[name])
        for name in parser.sections()
        if name == "mypy" or name.startswith("mypy-")
    }


def _of_toml(data: dict[str, Any]) -> dict[str, Section]:
    tool = data.get("tool")
    settings = tool.get("mypy") if isinstance(tool, dict) else None
    if not isinstance(settings, dict):
        return {}
    found = {"mypy": {k: _ini_value(v) for k, v in settings.items() if k != "overrides"}}
    overrides = settings.get("overrides")
    for item in overrides if isinstance(overrides, list) else []:
        modules = item.get("module") if isinstance(item, dict) else None
        names = [modules] if isinstance(modules, str) else modules
        for name in names if isinstance(names, list) else []:
            section = found.setdefault(f"mypy-{name}", {})
            section |= {k: _ini_value(v) for k, v in item.items() if k != "module"}
    return found


def _ini_value(value: Any) -> str:
    """A TOML value as mypy's INI files write it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).replace("\n", " ")
