"""`[tool.torchstone]` of the nearest pyproject.toml, checked against the options classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchstone.core.errors import ConfigError
from torchstone.core.files import read_regular
from torchstone.core.options import from_mapping, unknown
from torchstone.core.text import Text

_BYTES = 4 * 1024 * 1024
DATA = ("devices",)
"""Tables that hold data and no options; the command that needs one reads and checks it."""


def find_config(start: Path) -> Path | None:
    """The nearest pyproject.toml with a [tool.torchstone] table, from a folder upwards."""
    at = start.resolve()
    for folder in (at, *at.parents):
        path = folder / "pyproject.toml"
        if path.is_file() and _speaks_of_us(path):
            return path
        if (folder / ".git").exists():
            return None
    return None


def _speaks_of_us(path: Path) -> bool:
    try:
        return b"tool.torchstone" in read_regular(path, _BYTES)
    except OSError:
        return False


def read_table(path: Path | None) -> dict[str, Any]:
    """The [tool.torchstone] table; {} where there is none."""
    if path is None:
        return {}
    todo = Text(
        "fix the file, or name another with --config", "请修正该文件，或用 --config 指定其他文件"
    )
    expected = Text("TOML with a [tool.torchstone] table", "含 [tool.torchstone] 表的 TOML")
    import tomllib

    try:
        data = tomllib.loads(read_regular(path, _BYTES).decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(str(path), str(error), expected, todo) from None
    tool = data.get("tool", {})
    table = tool.get("torchstone", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(str(path), repr(table), expected, todo)
    return table


def split_table(
    table: dict[str, Any], path: Path | None, common: type, tools: dict[str, type]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Checked values of the common options and of each tool's own table."""
    where = f"{path} [tool.torchstone]"
    own = {key: value for key, value in table.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in table.items() if isinstance(value, dict)}
    for name in tables:
        if name not in tools and name not in DATA:
            raise unknown(where, name, [*tools, *DATA], ConfigError)
    return from_mapping(common, own, where), {
        name: from_mapping(tools[name], rows, f"{path} [tool.torchstone.{name}]")
        for name, rows in tables.items()
        if name not in DATA
    }
