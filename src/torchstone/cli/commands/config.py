"""`torchstone config [KEY]`: every setting, its value here, and where that comes from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchstone.cli.common import CommonOptions
from torchstone.cli.main import tool_options
from torchstone.cli.settings import find_config, read_table, split_table
from torchstone.cli.show import only, put, use_colour
from torchstone.core.options import Option, option, options_of, options_schema, unknown
from torchstone.core.text import Text
from torchstone.render.style import Style

HELP = Text(
    en="every setting: its value here, its meaning, where it comes from",
    zh="所有设置：当前值、含义与来源",
)
READS_CONFIG = False


@dataclass(frozen=True, slots=True)
class ConfigOptions:
    """What `torchstone config` can be told."""

    key: tuple[str, ...] = option(
        (), "settings to explain (select, check.select)", "要说明的设置（select、check.select）",
        positional=True, config=False, metavar="KEY",
    )  # fmt: skip
    schema: bool = option(
        False, "the options of each tool as JSON schemas for agents", "以 JSON schema 输出各工具的选项（供智能体使用）",
        config=False,
    )  # fmt: skip


OPTIONS = ConfigOptions


def run(options: ConfigOptions, common: CommonOptions) -> int:
    only(common, "text", "json")
    tools = tool_options()
    if options.schema:
        schemas = {name: options_schema(cls, common.lang) for name, cls in tools.items()}
        put(json.dumps(schemas, ensure_ascii=False, indent=2) + "\n", common)
        return 0
    path = Path(common.config) if common.config else find_config(Path("."))
    table = read_table(path)
    shared, tables = split_table(table, path, CommonOptions, tools) if table else ({}, {})
    rows = [("", item, shared) for item in options_of(CommonOptions) if item.about.config]
    for name, cls in tools.items():
        rows += [
            (name, item, tables.get(name, {})) for item in options_of(cls) if item.about.config
        ]
    wanted = {key.replace("_", "-") for key in options.key}
    names = {full for tool, item, _ in rows for full in _names(tool, item)}
    for key in wanted - names:
        raise unknown("config", key, sorted(names))
    rows = [row for row in rows if not wanted or wanted & _names(row[0], row[1])]
    if common.format == "json":
        data = [_data(tool, item, given, path) for tool, item, given in rows]
        put(json.dumps(data, ensure_ascii=False, indent=2) + "\n", common)
        return 0
    style = Style(lang=common.lang, colour=use_colour(common.colour) and not common.output)
    head = str(path) if path else style.say("no [tool.torchstone] found from here upwards: defaults",
                                            "从当前目录向上未找到 [tool.torchstone]：使用默认值")  # fmt: skip
    lines = [style.paint(head, "dim"), ""]
    last = None
    for tool, item, given in rows:
        if tool != last:
            lines.append(style.paint(f"[tool.torchstone{'.' + tool if tool else ''}]", "bold"))
            last = tool
        value = given.get(item.name, item.default)
        source = (
            style.say("set here", "已设置") if item.name in given else style.say("default", "默认")
        )
        lines.append(f"{item.key} = {_toml(value)}  # {source}")
        choices = f" ({' | '.join(item.about.choices)})" if item.about.choices else ""
        lines.append(style.paint(f"    {item.about.help.get(common.lang)}{choices}", "dim"))
    put("\n".join(lines) + "\n", common)
    return 0


def _names(tool: str, item: Option) -> set[str]:
    return {item.key, f"{tool}.{item.key}"} if tool else {item.key}


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _data(tool: str, item: Option, given: dict[str, Any], path: Path | None) -> dict[str, Any]:
    value = given.get(item.name, item.default)
    return {
        "key": f"{tool}.{item.key}" if tool else item.key,
        "value": list(value) if isinstance(value, tuple) else value,
        "source": str(path) if item.name in given else "default",
        "choices": list(item.about.choices),
        "help": {"en": item.about.help.en, "zh": item.about.help.zh},
    }
