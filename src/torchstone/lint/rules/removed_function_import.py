"""An import of what torch no longer has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.knowledge.torch_api import REMOVED, Symbol, shown
from torchstone.lint.rule import HIGH, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

_LATER = Text(
    en="the import of `{name}` works with torch {oldest}, but it is removed in torch {removed}",
    zh="导入 `{name}` 在 torch {oldest} 中可用，但 torch {removed} 已将其移除",
)

RULE = Rule(
    "TS502",
    "removed-function-import",
    severity=HIGH,
    aliases=("TOR004",),
    title=Text(en="A name is imported that torch no longer has", zh="导入了 torch 已移除的名字"),
    say=Text(
        en="`{name}` is removed since torch {removed}", zh="`{name}` 自 torch {removed} 起已移除"
    ),
    why=Text(
        en="the import fails, or brings a function that only raises: the whole module is lost, "
        "not just one call",
        zh="导入会失败，或得到一个只会抛错的函数：受影响的是整个模块，而不只是一次调用",
    ),
    suggest=Text(en="use `{instead}`", zh="改用 `{instead}`"),
    page=Text(
        en="Fires on `from torch import symeig` and its like, and on any import of the modules "
        "`torch._six` (gone since torch 2.0) and `torch.utils.ffi` (gone since 1.0).\n\n"
        "When the project's requirements admit a torch that still has the name, the finding is "
        "MEDIUM. Quiet in `try`/`except ImportError` and under a condition that asks for the "
        "version.",
        zh="检查 `from torch import symeig` 之类的导入，以及对模块 `torch._six`（torch 2.0 起移除）与 "
        "`torch.utils.ffi`（1.0 起移除）的任何导入。\n\n"
        "若项目依赖允许仍有该名字的 torch，则降为 MEDIUM。位于 `try`/`except ImportError` 中或版本判断之下"
        "不报告。",
    ),
    words=tuple(name.rpartition(".")[2] for name in REMOVED),
    bad="""\
from torch import symeig
""",
    good="from torch.linalg import eigh\n",
)


@RULE.on(ast.ImportFrom)
def check_from(node: ast.ImportFrom, scene: Scene) -> Iterator[Hit]:
    """`from torch import symeig`"""
    if node.level or not node.module or not node.module.startswith("torch"):
        return
    home = REMOVED.get(node.module)
    found = [home] if home else [REMOVED.get(f"{node.module}.{alias.name}") for alias in node.names]
    for symbol in found:
        yield from _hit(node, symbol, scene)


@RULE.on(ast.Import)
def check_import(node: ast.Import, scene: Scene) -> Iterator[Hit]:
    """`import torch._six`"""
    for alias in node.names:
        yield from _hit(node, REMOVED.get(alias.name), scene)


def _hit(node: ast.stmt, symbol: Symbol | None, scene: Scene) -> Iterator[Hit]:
    if symbol is None or symbol.removed is None or guarded(scene, node):
        return
    oldest = scene.project.torch
    # `torch>=1.6` admits the newest release, which does not have the name
    works = oldest is not None and oldest < symbol.removed and not scene.project.torch_open
    if works and oldest is not None and oldest < symbol.available:
        return
    yield RULE.at(
        node,
        severity=MEDIUM if works else None,
        say=_LATER if works else None,
        suggest=symbol.advice,
        name=symbol.name,
        removed=shown(symbol.removed),
        oldest=shown(oldest) if oldest else "",
        instead=symbol.instead,
    )
