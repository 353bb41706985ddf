"""A call of what torch no longer has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import call_fix, guarded
from torchstone.lint.knowledge.torch_api import CALLED, REMOVED, shown
from torchstone.lint.rule import HIGH, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

_LATER = Text(
    en="`{name}` works with torch {oldest}, but is removed in torch {removed}",
    zh="`{name}` 在 torch {oldest} 中可用，但 torch {removed} 已将其移除",
)

RULE = Rule(
    "TS501",
    "removed-function",
    severity=HIGH,
    aliases=("TOR001",),
    title=Text(en="A function is called that torch no longer has", zh="调用了 torch 已移除的函数"),
    say=Text(
        en="`{name}` is removed since torch {removed}", zh="`{name}` 自 torch {removed} 起已移除"
    ),
    why=Text(en="the call raises an error as soon as it runs", zh="一执行到该调用就会报错"),
    suggest=Text(en="use `{instead}`", zh="改用 `{instead}`"),
    page=Text(
        en="Fires on calls of names that newer releases of torch do not have any more, or keep "
        "only as functions that raise: `torch.solve`, `torch.symeig`, `torch.eig`, "
        "`torch.matrix_rank`, `torch.lstsq`, `torch.rfft`, `torch.irfft`, `torch.ifft`, "
        "`torch.gels`, `torch.gesv`, `torch.potrf`, `torch.trtrs`, `torch.btrifact`.\n\n"
        "When the project's requirements admit a torch that still has the name, the finding is "
        "MEDIUM: it works there and breaks with the next upgrade. Quiet in `try` and under a "
        "condition that asks for the version.\n\n"
        "Fixes are unsafe: the successors take their arguments in another order or give other "
        "answers.",
        zh="检查对新版 torch 已不存在（或仅保留为抛错函数）的名字的调用：`torch.solve`、`torch.symeig`、"
        "`torch.eig`、`torch.matrix_rank`、`torch.lstsq`、`torch.rfft`、`torch.irfft`、`torch.ifft`、"
        "`torch.gels`、`torch.gesv`、`torch.potrf`、`torch.trtrs`、`torch.btrifact`。\n\n"
        "若项目依赖允许仍有该名字的 torch，则降为 MEDIUM：目前可用，下次升级就会失效。位于 `try` 中或版本"
        "判断之下不报告。\n\n"
        "修复均不安全：后继函数的参数顺序或返回值有所不同。",
    ),
    bad="""\
import torch

def spectrum(a):
    values, vectors = torch.symeig(a, eigenvectors=True)
    return values, vectors
""",
    fixed="""\
@@ -4 +4 @@
-    values, vectors = torch.symeig(a, eigenvectors=True)
+    values, vectors = torch.linalg.eigh(a, UPLO='U')
""",
)


@RULE.on_call(*(name.rpartition(".")[2] for name in (*REMOVED, *CALLED)))
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.symeig(a)`"""
    symbol = CALLED.get(full := scene.qualified(call.func)) or REMOVED.get(full)
    if symbol is None or symbol.removed is None or guarded(scene, call):
        return
    oldest = scene.project.torch
    # `torch>=1.6` admits the newest release, which does not have the name
    works = oldest is not None and oldest < symbol.removed and not scene.project.torch_open
    if works and oldest is not None and oldest < symbol.available:
        return  # the project's torch has nothing else yet
    yield RULE.at(
        call,
        severity=MEDIUM if works else None,
        say=_LATER if works else None,
        suggest=symbol.advice,
        fix=call_fix(scene, call, symbol),
        name=symbol.name,
        removed=shown(symbol.removed),
        oldest=shown(oldest) if oldest else "",
        instead=symbol.instead,
    )
