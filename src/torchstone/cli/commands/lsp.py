"""`torchstone lsp`: `check` inside an editor, over the Language Server Protocol."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import PackageError
from torchstone.cli.settings import find_config, read_table
from torchstone.core.options import from_mapping
from torchstone.core.text import Text
from torchstone.lint.options import CheckOptions

HELP = Text(
    en="a language server for editors: diagnostics, hover and quick fixes of check",
    zh="面向编辑器的语言服务器：check 的诊断、悬停说明与快速修复",
)
READS_CONFIG = False
FORMATS = ("text",)


@dataclass(frozen=True, slots=True)
class LspOptions:
    """None: the editor starts the server, and settings come from the project's pyproject.toml."""


OPTIONS = LspOptions


def run(options: LspOptions, common: CommonOptions) -> int:
    if importlib.util.find_spec("pygls") is None:
        needs = Text("the package pygls, which is not installed", " pygls，当前环境中没有安装")
        raise PackageError("lsp", needs, 'pip install "torchstone[lsp]"')
    from torchstone.integrations.lsp.server import serve

    serve(_read_options, common.lang)
    return 0


def _read_options(folder: Path) -> CheckOptions:
    """[tool.torchstone.check] of the nearest pyproject.toml."""
    path = find_config(folder)
    rows = read_table(path).get("check", {})
    where = f"{path} [tool.torchstone.check]"
    return CheckOptions(**from_mapping(CheckOptions, rows if isinstance(rows, dict) else {}, where))
