"""A call of what torch wants to drop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import call_fix, from_import, guarded
from torchstone.lint.knowledge.torch_api import DEPRECATED, shown
from torchstone.lint.rule import LOW, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS503",
    "deprecated-function",
    severity=LOW,
    aliases=("TOR101",),
    title=Text(en="A function is called that torch has deprecated", zh="调用了 torch 已弃用的函数"),
    say=Text(
        en="`{name}` is deprecated since torch {since}", zh="`{name}` 自 torch {since} 起弃用"
    ),
    why=Text(
        en="deprecated names get no fixes, warn at run time and go away with a later release",
        zh="已弃用的名字不再维护，运行时会发出警告，并将在后续版本中移除",
    ),
    suggest=Text(en="use `{instead}`", zh="改用 `{instead}`"),
    page=Text(
        en="Knows the old linear algebra of the `torch` namespace (`qr`, `cholesky`, "
        "`chain_matmul`, `ger`, `lu`, `lu_solve`, `norm`, `svd`, `triangular_solve`), "
        "`torch.range`, the `UpsamplingNearest2d` and `UpsamplingBilinear2d` modules, "
        "`F.upsample`, `nn.init` without the final underscore, `weight_norm`, `sdp_kernel`, "
        "`assert_allclose`, `set_default_tensor_type`, `_register_pytree_node`, "
        "`library.impl_abstract`, `functorch.*` and a few more. The names are data, checked "
        "against the installed torch by a test.\n\n"
        "Quiet when the project's oldest torch does not have the successor yet, in `try`, and "
        "under a condition that asks for the version. A name brought in by `from module import` "
        "whose successor is called the same is reported at the import only.\n\n"
        "Fixes are safe where both give the same answer. `torch.range` has its end in and is "
        "always floating: the fix moves the end on by one and keeps the dtype; it is unsafe where "
        "the bounds are not written numbers. For `torch.norm` it is unsafe in files that speak of "
        "sparse tensors, which `vector_norm` does not take.",
        zh="涵盖 `torch` 命名空间中的旧线性代数函数（`qr`、`cholesky`、`chain_matmul`、`ger`、`lu`、"
        "`lu_solve`、`norm`、`svd`、`triangular_solve`）、`torch.range`、`UpsamplingNearest2d` 与 "
        "`UpsamplingBilinear2d`、`F.upsample`、不带末尾下划线的 `nn.init`、`weight_norm`、`sdp_kernel`、"
        "`assert_allclose`、`set_default_tensor_type`、`_register_pytree_node`、`library.impl_abstract`、"
        "`functorch.*` 等。这些名字是数据，由测试对照已安装的 torch 核验。\n\n"
        "若项目支持的最低 torch 尚无后继函数、位于 `try` 中或版本判断之下，则不报告。由 `from 模块 import` "
        "引入且后继同名的，只在导入处报告。\n\n"
        "结果相同的替换是安全修复。`torch.range` 包含终点且总是浮点：修复会把终点后移一位并保持 dtype；"
        "上下界不是字面量时标记为不安全。`torch.norm` 在涉及稀疏张量的文件中标记为不安全，因为 "
        "`vector_norm` 不支持稀疏张量。",
    ),
    bad="""\
import torch

q, r = torch.qr(a, some=False)
""",
    fixed="""\
@@ -3 +3 @@
-q, r = torch.qr(a, some=False)
+q, r = torch.linalg.qr(a, mode='complete')
""",
)


@RULE.on_call(*sorted({name.rpartition(".")[2] for name in DEPRECATED}))
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.qr(a)`"""
    symbol = DEPRECATED.get(scene.qualified(call.func))
    if symbol is None:
        return
    oldest = scene.project.torch
    early = oldest is not None and oldest < max(symbol.since, symbol.available)
    if early and not scene.project.torch_open:
        return
    if symbol.drop_in and from_import(scene, call.func, symbol.name):
        return  # fixed at the import
    if guarded(scene, call):
        return
    yield RULE.at(
        call,
        suggest=symbol.advice,
        fix=None if early else call_fix(scene, call, symbol),
        name=symbol.name,
        since=shown(symbol.since),
        instead=symbol.instead,
    )
