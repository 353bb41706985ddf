"""The mean of integers does not exist in torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.dtypes import integer_dtype
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, Hit, Rule, safe
from torchstone.lint.values.half_operands import subject
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS115",
    "mean-of-integers",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(en="`{call}` on a tensor of {dtype}", zh="`{call}` 作用于 {dtype} 张量"),
    why=Text(
        en="torch does not average whole numbers or booleans as numpy does: this raises "
        "`RuntimeError`, because only floating point and complex types are accepted",
        zh="torch 不像 numpy 那样对整数或布尔值求平均：此处会抛出 `RuntimeError`，只接受浮点和复数类型",
    ),
    suggest=Text(en="convert first: `.float().{name}(…)`", zh="先转换：`.float().{name}(…)`"),
    title=Text(
        en="A mean, std, var, norm or softmax of an integer or boolean tensor raises an error",
        zh="对整数或布尔张量求 mean、std、var、norm 或 softmax 会报错",
    ),
    page=Text(
        en="""\
`torch.tensor([1, 2])` is int64 and `a == b` is bool; `.mean()` of them raises "could not infer
output dtype", `.std()`, `.var()`, `.norm()` and `.softmax()` raise likewise. `sum()` works and gives
int64.

Reported where the tensor is plainly an integer one of torch: a literal list of whole numbers,
`torch.arange`, `randint`, `argmax` and the like, `.long()`, `.int()`, `.bool()`, `.to(torch.long)`,
a comparison with one of these, and views of them. Comparisons of values that might be numpy arrays
are left alone, since numpy does average them. Quiet with `dtype=` and in tests, where errors are
provoked on purpose.""",
        zh="""\
`torch.tensor([1, 2])` 是 int64，`a == b` 是 bool；对它们求 `.mean()` 会报 "could not infer output dtype"，`.std()`、
`.var()`、`.norm()`、`.softmax()` 同样报错。`sum()` 可用，结果为 int64。

仅当张量明显是 torch 的整数类型时报告：整数字面量列表、`torch.arange`、`randint`、`argmax` 等，`.long()`、`.int()`、
`.bool()`、`.to(torch.long)`，与它们的比较，以及它们的视图。可能是 numpy 数组的比较不报告，因为 numpy 允许求平均。
已传 `dtype=` 以及测试（会故意触发错误）中不报告。""",
    ),
    bad="""\
import torch

def accuracy(logits, labels):
    return (logits.argmax(dim=-1) == labels).mean()
""",
    fixed="""\
@@ -4 +4 @@
-    return (logits.argmax(dim=-1) == labels).mean()
+    return (logits.argmax(dim=-1) == labels).float().mean()
""",
)
_NAMES = ("mean", "std", "var", "norm", "softmax", "log_softmax", "std_mean", "var_mean", "nanmean")


@RULE.on_call(*_NAMES)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """One of the functions that want floating point, on what is none."""
    if scene.keyword(call, "dtype") is not None or scene.has_star(call):
        return
    full = scene.qualified(call.func)
    name = scene.last_name(call.func)
    if full and full not in (f"torch.{name}", f"torch.nn.functional.{name}"):
        return
    tensor = subject(scene, call)
    dtype = integer_dtype(scene, tensor)
    if not dtype or tensor is None or scene.is_test:
        return
    closing = scene.text(tensor)
    if isinstance(tensor, (ast.Compare, ast.BinOp)):
        closing = f"({closing})"
    at_method = bool(scene.method(call))
    # a bracketed receiver keeps its brackets: insert behind them, in front of the dot
    if at_method and isinstance(call.func, ast.Attribute):
        _, _, line, column = scene.span(call.func)
        start = column - len(call.func.attr) - 1
        plain = scene.lines[line - 1][start : start + 1] == "."
        fix = safe(scene.edit(line, start, line, start, ".float()")) if plain else None
    else:
        fix = safe(scene.replace(tensor, f"{closing}.float()"))
    sure = name in ("mean", "std", "var")
    yield RULE.at(
        call,
        confidence=CERTAIN if sure else LIKELY,
        fix=fix,
        call=scene.brief(call),
        dtype=dtype,
        name=name,
    )
