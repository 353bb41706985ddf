"""An exception that is made and not raised lets the program go on."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import CERTAIN, LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS260",
    "exception-not-raised",
    torch_from=(0, 1),
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(en="`{name}` is made and not raised", zh="创建了 `{name}` 却没有抛出"),
    why=Text(
        en="nothing stops here: training goes on with what should have ended it",
        zh="此处什么都不会发生：本应终止的情况下训练会继续进行",
    ),
    suggest=Text(en="raise it", zh="加上 `raise`"),
    title=Text(
        en="A statement makes an exception and does not raise it",
        zh="一条语句创建了异常却没有抛出",
    ),
    page=Text(
        en="Reported where a statement is nothing but a call of one of Python's exceptions, or of a class whose name ends in "
        "`Error` or `Exception`. The fix puts `raise` before it.",
        zh="当一条语句只是调用 Python 的某个异常，或名称以 `Error`、`Exception` 结尾的类时报告。修复会在前面加上 `raise`。",
    ),
    words=("torch", "__getitem__", "model"),
    bad="""\
import torch

def build(name, parameters):
    if name == "adam":
        return torch.optim.Adam(parameters)
    NotImplementedError(f"unknown optimizer {name}")
""",
    fixed="""\
@@ -6 +6 @@
-    NotImplementedError(f"unknown optimizer {name}")
+    raise NotImplementedError(f"unknown optimizer {name}")
""",
)


@RULE.on(ast.Expr)
def check(statement: ast.Expr, scene: Scene) -> Iterator[Hit]:
    """`ValueError("unknown scheduler")` as a statement."""
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or scene.is_test:
        return
    name = call.func.id
    if _is_exception(scene, call.func):
        sure = CERTAIN if name not in scene.bound else None
        fix = safe(scene.insert_before(call, "raise "))
        yield RULE.at(statement, confidence=sure, name=name, fix=fix)


def _is_exception(scene: Scene, node: ast.Name) -> bool:
    """Whether a name is one of Python's exceptions, or a class that is called one."""
    made = getattr(builtins, node.id, None)
    if isinstance(made, type) and issubclass(made, Exception):
        return node.id not in scene.bound
    if not node.id.endswith(("Error", "Exception")) or not node.id[0].isupper():
        return False
    found = scene.project.definition(scene, node, scene.qualified(node))
    return found is not None and isinstance(found[1], ast.ClassDef)
