"""Submodules can be assigned only after nn.Module's own __init__ has run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePath

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.facts.members import members_of
from torchstone.lint.knowledge.layers import is_parameter, nn_class
from torchstone.lint.rule import HIGH, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS215",
    "module-used-before-init",
    severity=HIGH,
    say=Text(
        en="`{what}` comes before nn.Module.__init__ has run",
        zh="`{what}` 出现在 nn.Module.__init__ 运行之前",
    ),
    why=Text(
        en="the registries for parameters, buffers and submodules do not exist yet: making a "
        "{owner} raises AttributeError (cannot assign module before Module.__init__() call)",
        zh="此时参数、缓冲区和子模块的登记表还不存在：创建 {owner} 会抛出 AttributeError"
        "（cannot assign module before Module.__init__() call）",
    ),
    suggest=Text(
        en="call super().__init__() first in {owner}.__init__",
        zh="在 {owner}.__init__ 的最前面调用 super().__init__()",
    ),
    title=Text(
        en="A module assigns a submodule before super().__init__() and raises an error",
        zh="模块在 super().__init__() 之前就给子模块赋值，会报错",
    ),
    page=Text(
        en="Fires in the `__init__` of an nn.Module class when a torch.nn layer, a Parameter or a "
        "registration (`register_buffer`, `register_parameter`, `add_module`) stands before the "
        "call of `super().__init__()`, or when a direct subclass of nn.Module never makes that "
        "call.\n\n"
        "- Plain values (`self.dim = 3`) may be assigned earlier and are quiet.\n"
        "- `modular_*.py` files of transformers are templates that nobody runs, and quiet.\n"
        "- For a class whose parent is another class of yours, only a call that comes too late is "
        "reported, not one that is missing.",
        zh="在 nn.Module 类的 `__init__` 中，若 torch.nn 层、Parameter 或注册调用（`register_buffer`、"
        "`register_parameter`、`add_module`）出现在 `super().__init__()` 之前，或 nn.Module 的直接子类"
        "根本没有调用它，则报告。\n\n"
        "- 普通值（`self.dim = 3`）可以先赋值，不报告。\n"
        "- transformers 的 `modular_*.py` 是模板，不会被执行，不报告。\n"
        "- 父类是项目内其他类时，只报告调用过晚，不报告缺失。",
    ),
    bad="""\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(8, 8)
        super().__init__()
""",
    fixed="""\
@@ -4,0 +5 @@
+        super().__init__()
@@ -6 +6,0 @@
-        super().__init__()
""",
    words=("Module",),
    needs=("__init__",),
)
_REGISTERS = ("register_buffer", "register_parameter", "add_module", "register_module")


@RULE.on(ast.ClassDef)
def check(owner: ast.ClassDef, scene: Scene) -> Iterator[Hit]:
    init = next(
        (i for i in owner.body if isinstance(i, ast.FunctionDef) and i.name == "__init__"), None
    )
    if init is None or not owner.bases:
        return
    first, when = None, len(init.body)
    for number, statement in enumerate(init.body):
        if _calls_init(scene, statement):
            when = number
            break
        if first is None and _needs_init(scene, statement):
            first = statement
    if first is None and when == len(init.body):
        first = next((item for item in init.body if _sets_attribute(scene, item)), None)
    template = PurePath(scene.path).name.startswith("modular_")
    if first is None or template or not scene.is_module_class(owner):
        return
    missing = when == len(init.body)
    direct = len(owner.bases) == 1 and scene.qualified(owner.bases[0]) == "torch.nn.Module"
    if missing and (len(owner.bases) > 1 or owner.decorator_list or not _is_module(scene, owner)):
        return
    yield RULE.at(
        first,
        what=scene.brief(first),
        owner=owner.name,
        fix=_fix(scene, init, when, missing, direct),
    )


def _is_module(scene: Scene, owner: ast.ClassDef) -> bool:
    """Whether all of its bases are known, so that none of them sets the module up in another way."""
    return members_of(scene, owner) is not None


def _sets_attribute(scene: Scene, statement: ast.stmt) -> bool:
    """`self.module = module`: what the caller gives may be a module."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, ast.Attribute) and scene.dotted(target.value) == "self"


def _calls_init(scene: Scene, statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("__init__", "__setstate__")
        for node in scene.inside(statement)
    )


def _needs_init(scene: Scene, statement: ast.stmt) -> bool:
    """Whether a top-level statement of `__init__` registers something on self."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        return scene.last_name(call.func) in _REGISTERS and (
            scene.dotted(scene.receiver(call)) == "self"
        )
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Attribute) or scene.dotted(target.value) != "self":
        return False
    value = statement.value
    if not isinstance(value, ast.Call):
        return False
    name = nn_class(scene, value.func)
    return is_parameter(scene, value.func) or (bool(name) and name[0].isupper())


def _fix(scene: Scene, init: ast.FunctionDef, when: int, missing: bool, direct: bool) -> Fix | None:
    """Move a plain `super().__init__()` to the top, or add it."""
    body = init.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    top = body[1] if documented and len(body) > 1 else body[0]
    if not direct:
        return None
    add = scene.insert_line_before(top, "super().__init__()")
    if missing:
        return safe(add)
    late = body[when]
    plain = isinstance(late, ast.Expr) and isinstance(late.value, ast.Call)
    if not plain or late.value.args or late.value.keywords:  # type: ignore[attr-defined]
        return None
    remove = scene.delete_line(late)
    return safe(add, remove) if remove is not None else None
