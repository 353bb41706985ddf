"""`~flag` of a Python bool is -1 or -2, and both are true."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS237",
    "inverted-python-bool",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{text}` is true whatever `{flag}` is", zh="无论 `{flag}` 取什么值，`{text}` 都为真"
    ),
    why=Text(
        en="`~` flips the bits of a Python bool: ~True is -2 and ~False is -1",
        zh="`~` 对 Python 布尔值按位取反：~True 是 -2，~False 是 -1",
    ),
    suggest=Text(en="write `not {flag}`", zh="改为 `not {flag}`"),
    title=Text(
        en="A Python bool is inverted with ~, which is true for both values",
        zh="用 ~ 对 Python 布尔值取反，结果总为真",
    ),
    page=Text(
        en="Fires for `~x` where a condition is asked for (`if`, `while`, `and`, `or`, `not`) and `x` is a "
        "Python bool: `self.training`, an answer of `isinstance()`, `hasattr()`, `is_available()` and the "
        "like, a parameter that is annotated as `bool`, or a name bound to `True` and `False` only. MEDIUM for a "
        "parameter whose default alone tells. `self.training` and such answers also where the result is kept "
        "or passed on.\n\n"
        "- `~mask` of a boolean tensor is right, and quiet.",
        zh="当需要条件的地方（`if`、`while`、`and`、`or`、`not`）写了 `~x`，而 `x` 是 Python 布尔值时报告：`self.training`，"
        "`isinstance()`、`hasattr()`、`is_available()` 等的返回值，标注为 `bool` 的参数，或只绑定过 `True` 和 `False` 的名字。"
        "仅由默认值看出的参数为 MEDIUM。`self.training` 与此类返回值在结果被保存或传递时也报告。\n\n"
        "- 对布尔张量写 `~mask` 是正确的，不报告。",
    ),
    bad="""\
import torch

def forward(self, x, causal: bool):
    if ~causal:
        return x
    return x.tril()
""",
    fixed="""\
@@ -4 +4 @@
-    if ~causal:
+    if not causal:
""",
    good="""\
import torch

def forward(self, x, mask: torch.Tensor):
    if (~mask).any():
        return x
    return x[~mask]
""",
    words=("torch",),
)
_ANSWERS = frozenset(
    ("isinstance", "hasattr", "callable", "issubclass", "is_available", "is_initialized", "is_tensor",
     "exists", "isfile", "isdir", "startswith", "endswith", "is_grad_enabled")
)  # fmt: skip
_FIELDS = ("training", "requires_grad", "is_cuda", "is_leaf")


@RULE.on(ast.UnaryOp)
def check(node: ast.UnaryOp, scene: Scene) -> Iterator[Hit]:
    if not isinstance(node.op, ast.Invert):
        return
    kind = _kind(scene, node.operand)
    if not kind or not (_is_condition(scene, node) or (kind == "answer" and _is_kept(scene, node))):
        return
    flag = scene.text(node.operand)
    yield RULE.at(
        node,
        severity=MEDIUM if kind == "default" else HIGH,
        confidence=CERTAIN if kind == "answer" else None,
        text=scene.brief(node),
        flag=scene.brief(node.operand),
        fix=safe(scene.replace(node, f"not {flag}")),
    )


def _is_condition(scene: Scene, node: ast.AST) -> bool:
    up = scene.parent(node)
    if isinstance(up, (ast.If, ast.While, ast.IfExp)):
        return up.test is node
    return isinstance(up, (ast.BoolOp, ast.Assert)) or (
        isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not)
    )


def _is_kept(scene: Scene, node: ast.AST) -> bool:
    """`greedy = ~self.training`, `f(greedy=~self.training)`: nothing asks for bits here."""
    return isinstance(scene.parent(node), (ast.Assign, ast.keyword, ast.Return))


def _kind(scene: Scene, flag: ast.expr) -> str:
    """How a value is known to be a bool: `answer`, `note` (an annotation), `default`; or ""."""
    if isinstance(flag, ast.Call):
        return "answer" if scene.last_name(flag.func) in _ANSWERS else ""
    if isinstance(flag, ast.Attribute):
        own = scene.dotted(flag.value) == "self" or flag.attr != "training"
        return "answer" if flag.attr in _FIELDS and own else ""
    rows = scene.bindings(flag) if isinstance(flag, ast.Name) else []
    if not rows:
        return ""
    if len(rows) == 1 and isinstance(rows[0].node, ast.arg):
        note = rows[0].node.annotation
        if note is not None:
            return "note" if scene.text(note) == "bool" else ""
        return "default" if _default(scene, rows[0].node) else ""
    plain = all(row.how == "assign" and scene.literal(row.value) in (True, False) for row in rows)
    return "note" if plain and all(isinstance(row.value, ast.Constant) for row in rows) else ""


def _default(scene: Scene, argument: ast.arg) -> bool:
    """Whether the default of a parameter is True or False."""
    function = scene.function(argument)
    if function is None:
        return False
    names = [*function.args.posonlyargs, *function.args.args]
    pairs = zip(reversed(names), reversed(function.args.defaults), strict=False)
    return any(
        name is argument and isinstance(value, ast.Constant) and isinstance(value.value, bool)
        for name, value in pairs
    )
