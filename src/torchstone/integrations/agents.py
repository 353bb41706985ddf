"""Set-up of coding agents: the server in their configuration, and the skills where they look for them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular, write_atomically
from torchstone.core.text import Text
from torchstone.skills import all_skills

COMMAND = {"command": "torchstone", "args": ["mcp", "--root", "."]}
_LARGEST = 1 << 20
"""Bytes of a configuration file that is read: a person writes them."""


@dataclass(frozen=True, slots=True)
class Client:
    """One coding agent: where a project keeps its servers and its skills."""

    title: str
    file: str
    """Of the project; empty where the agent has one for all projects."""
    servers: str
    """The key of the table of servers."""
    skills: str
    by_hand: str
    """The same by the agent's own command; or its file outside the project."""


CLIENTS = {
    "claude": Client("Claude Code", ".mcp.json", "mcpServers", ".claude/skills",
                     "claude mcp add torchstone -- torchstone mcp --root ."),
    "codex": Client("Codex", "", "mcp_servers", ".agents/skills",
                    "codex mcp add torchstone -- torchstone mcp --root ."),
    "cursor": Client("Cursor", ".cursor/mcp.json", "mcpServers", ".cursor/skills", ""),
    "vscode": Client("VS Code", ".vscode/mcp.json", "servers", ".github/skills",
                     """code --add-mcp '{"name":"torchstone","command":"torchstone","args":["mcp","--root","."]}'"""),
}  # fmt: skip


def describe_setup(client: Client) -> Text:
    """What to paste, for a person who prefers to do it themselves."""
    parts_en, parts_zh = [], []
    if client.by_hand:
        parts_en.append(f"Run once:\n\n    {client.by_hand}")
        parts_zh.append(f"运行一次：\n\n    {client.by_hand}")
    if client.file:
        text = json.dumps(_added({}, client), indent=2)
        block = "\n".join(f"    {line}" for line in text.splitlines())
        parts_en.append(f"Or put this into {client.file}:\n\n{block}" if client.by_hand else f"Put this into {client.file}:\n\n{block}")  # fmt: skip
        parts_zh.append(f"或写入 {client.file}：\n\n{block}" if client.by_hand else f"写入 {client.file}：\n\n{block}")  # fmt: skip
    return Text("\n\n".join(parts_en), "\n\n".join(parts_zh))


def write_setup(client: Client, project: Path) -> list[Path]:
    """Add the server to the project's configuration and copy the skills; what was written."""
    written = copy_skills(project / client.skills)
    if client.file:
        path = project / client.file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(_added(_read(path), client), indent=2) + "\n")
        written.append(path)
    return written


def _added(values: dict[str, Any], client: Client) -> dict[str, Any]:
    """The configuration with our server; others stay."""
    servers = values.get(client.servers)
    own = {"type": "stdio", **COMMAND} if client.servers == "servers" else COMMAND
    known = servers if isinstance(servers, dict) else {}
    return {**values, client.servers: {**known, "torchstone": own}}


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        values = json.loads(read_regular(path, _LARGEST))
    except (OSError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError(
            str(path), Text("something else", "其他内容"), Text("a JSON object", "JSON 对象"),
            Text("add the server by hand: torchstone mcp --setup NAME", "请手动添加：torchstone mcp --setup NAME"),
        )  # fmt: skip
    return values


def copy_skills(folder: Path) -> list[Path]:
    """Every skill in a folder of the name that its page has, as the format asks."""
    made: list[Path] = []
    for skill in all_skills().values():
        target = folder / skill.name.replace("_", "-")
        hidden = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(skill.folder, target, dirs_exist_ok=True, ignore=hidden)
        made.append(target)
    return made
