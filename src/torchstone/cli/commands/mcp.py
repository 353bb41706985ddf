"""`torchstone mcp`: all the tools for agents, over the Model Context Protocol."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

from torchstone.cli.common import CommonOptions
from torchstone.core.errors import UsageError
from torchstone.core.files import cache_folder
from torchstone.core.options import option, unknown
from torchstone.core.text import Text

HELP = Text(
    en="a Model Context Protocol server for agents: plan, run, findings, propose, verify, apply",
    zh="面向智能体的 Model Context Protocol 服务：规划、运行、问题、方案、验证、应用",
)
READS_CONFIG = False
FORMATS = ("text",)


@dataclass(frozen=True, slots=True)
class McpOptions:
    """How the server is reached, and which projects it may look at."""

    root: str = option(
        ".", "agents may name projects below this folder only", "智能体只能指定该文件夹之下的项目",
        config=False, metavar="FOLDER",
    )  # fmt: skip
    http: bool = option(
        False, "streamable HTTP on loopback instead of standard input and output",
        "以本机回环上的 HTTP 流式传输代替标准输入输出", config=False,
    )  # fmt: skip
    setup: str = option(
        "", "show how to add the server to an agent: claude, codex, cursor or vscode",
        "显示如何把服务加入智能体：claude、codex、cursor 或 vscode", config=False, metavar="AGENT",
    )  # fmt: skip
    write: bool = option(
        False, "with --setup: write it into the project at --root, and the skills with it",
        "配合 --setup：写入 --root 处的项目，并安装技能", config=False,
    )  # fmt: skip
    port: int = option(
        8765, "port on loopback, with --http", "配合 --http 的本机端口", config=False
    )


OPTIONS = McpOptions


def run(options: McpOptions, common: CommonOptions) -> int:
    if options.setup:
        return _set_up(options, common.lang)
    if options.write:
        raise UsageError(
            "mcp", "--write", Text("--setup AGENT beside it", "与 --setup AGENT 一起使用"),
            Text("write --setup claude --write", "请写 --setup claude --write"),
        )  # fmt: skip
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(
            "mcp", "no package mcp", Text("the Model Context Protocol SDK", "Model Context Protocol SDK"),
            Text('pip install "torchstone[mcp]"', 'pip install "torchstone[mcp]"'),
        )  # fmt: skip
    root = Path(options.root)
    if not root.is_dir():
        raise UsageError(
            "mcp: --root", repr(options.root), Text("a folder that exists", "存在的文件夹"),
            Text("name the folder that holds the projects", "请指定项目所在的文件夹"),
        )  # fmt: skip
    from torchstone.integrations.mcp.server import serve

    serve(root, cache_folder() / "mcp", options.http, options.port)
    return 0


def _set_up(options: McpOptions, lang: str) -> int:
    from torchstone.integrations.agents import CLIENTS, describe_setup, write_setup

    if options.setup not in CLIENTS:
        raise unknown("mcp: --setup", options.setup, list(CLIENTS))
    client = CLIENTS[options.setup]
    sys.stdout.write(f"{client.title}\n\n")
    if options.write:
        root = Path(options.root)
        for path in write_setup(client, root):
            sys.stdout.write(f"  {path}\n")
        if not client.file:
            sys.stdout.write("\n" + describe_setup(client).get(lang) + "\n")
        return 0
    more = Text(
        f"Or let Torchstone write it, with the skills: torchstone mcp --setup {options.setup} --write",
        f"也可由 Torchstone 写入（包括技能）：torchstone mcp --setup {options.setup} --write",
    )
    sys.stdout.write(f"{describe_setup(client).get(lang)}\n\n{more.get(lang)}\n")
    return 0
