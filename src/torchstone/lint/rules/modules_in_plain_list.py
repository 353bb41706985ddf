"""Layers in a plain list are invisible to parameters(), to() and state_dict()."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.layers import (
    CONTAINERS,
    DROPOUTS,
    WITH_WEIGHTS,
    holds_weights,
    is_parameter,
)
from torchstone.lint.rule import HIGH, LIKELY, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS216",
    "modules-in-plain-list",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="the layers in `self.{name}` are held by a plain {kind}",
        zh="`self.{name}` 中的层放在普通 {kind} 里",
    ),
    why=Text(
        en="nn.Module does not look inside a Python {kind}: parameters() leaves these layers out, so "
        "they are never trained, moved to the device, switched to eval() or saved",
        zh="nn.Module 不会查看 Python {kind} 的内部：parameters() 不包含这些层，它们不会被训练、不会移动到设备、"
        "不会切换 eval()，也不会保存",
    ),
    suggest=Text(en="use {container} for `self.{name}`", zh="`self.{name}` 改用 {container}"),
    title=Text(
        en="Layers kept in a plain Python list or dict are unknown to the module and do not train",
        zh="放在普通 Python 列表或字典中的子层不会注册到模块，也不会被训练",
    ),
    page=Text(
        en="Fires in nn.Module classes for `self.x = [...]`, `(...)`, `{...}`, the comprehensions "
        "of these, and `self.x.append(...)` on a list that starts empty, when what goes in has "
        "weights (or is dropout, whose mode would not switch).\n\n"
        "- Classes without state (`nn.ReLU`, pooling) are harmless in a list and quiet.\n"
        "- Quiet when the class registers them elsewhere: `nn.ModuleList(self.x)`, "
        "`nn.Sequential(*self.x)`, `self.add_module`, `setattr(self, ...)`, or another module that "
        "gets the list.\n"
        "- The fix changes the keys of the state dict, so it is applied on request only.",
        zh="在 nn.Module 类中，`self.x = [...]`、`(...)`、`{...}`、相应的推导式，以及对初始为空的列表 "
        "`self.x.append(...)`，若放入的是带权重的层（或 dropout，其模式不会切换），则报告。\n\n"
        "- 无状态的类（`nn.ReLU`、池化）放在列表里没有影响，不报告。\n"
        "- 若类在别处注册了它们则不报告：`nn.ModuleList(self.x)`、`nn.Sequential(*self.x)`、"
        "`self.add_module`、`setattr(self, ...)`，或把列表交给另一个模块。\n"
        "- 修复会改变 state dict 的键，因此只在明确要求时应用。",
    ),
    bad="""\
from torch import nn

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(depth)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
    fixed="""\
@@ -6 +6 @@
-        self.layers = [nn.Linear(8, 8) for _ in range(depth)]
+        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(depth)])
""",
    words=("Module", *sorted(CONTAINERS)),
    needs=("self",),
)
_LISTS = (ast.List, ast.Tuple, ast.ListComp)
_DICTS = (ast.Dict, ast.DictComp)
_WORDS = WITH_WEIGHTS | DROPOUTS | {"Parameter", "Sequential"}


@RULE.on(ast.Assign)
def check(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    value, target = statement.value, statement.targets[0]
    if not isinstance(value, (*_LISTS, *_DICTS)) or not isinstance(target, ast.Attribute):
        return
    if scene.dotted(target.value) != "self":
        return
    owner = scene.class_of(statement)
    if owner is None or not _fills(scene, owner, value, target.attr):
        return
    if not scene.is_module_class(owner) or _registered(scene, owner, target.attr):
        return
    is_dict = isinstance(value, _DICTS)
    kind = "dict" if is_dict else "tuple" if isinstance(value, ast.Tuple) else "list"
    yield RULE.at(
        statement,
        name=target.attr,
        kind=kind,
        container="nn.ModuleDict" if is_dict else "nn.ModuleList",
        # `[teacher]` is how a module is kept out of the parameters on purpose
        confidence=POSSIBLE if isinstance(value, ast.List) and len(value.elts) == 1 else None,
        fix=_fix(scene, value),
    )


def _fills(scene: Scene, owner: ast.ClassDef, value: ast.expr, name: str) -> bool:
    """Whether layers with weights go into the list, at once or by append."""
    if isinstance(value, ast.ListComp):
        return _weighty(scene, value.elt)
    if isinstance(value, ast.DictComp):
        return _weighty(scene, value.value)
    if isinstance(value, ast.Dict):
        return any(_weighty(scene, item) for item in value.values)
    assert isinstance(value, (ast.List, ast.Tuple))
    if value.elts or isinstance(value, ast.Tuple):
        return any(_weighty(scene, item) for item in value.elts)
    return any(
        scene.dotted(scene.receiver(call)) == f"self.{name}"
        and scene.class_of(call) is owner
        and len(call.args) == 1
        and _weighty(scene, call.args[0])
        for call in scene.calls.get("append", ())
    )


def _weighty(scene: Scene, item: ast.expr) -> bool:
    """Whether a list element is a new layer that must be registered."""
    while isinstance(item, ast.Call) and scene.method(item) in ("to", "cuda"):
        item = scene.receiver(item) or item
    if isinstance(item, ast.Call) and is_parameter(scene, item.func):
        return False
    return holds_weights(scene, item)


def _registered(scene: Scene, owner: ast.ClassDef, name: str) -> bool:
    """Whether the class makes these layers known in some other way."""
    for node in scene.inside(owner):
        if isinstance(node, ast.Call):
            called = scene.last_name(node.func)
            if called in ("add_module", "register_module", "setattr", "__setattr__"):
                return True
            if called in CONTAINERS and f"self.{name}" in scene.text(node):
                return True
            if called.lstrip("_")[:1].isupper() or called == "__init__":
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                if any(scene.dotted(item) == f"self.{name}" for item in given):
                    return True  # the module that gets them may register them
    values = scene.attribute_values(owner, name)
    return len(values) > 1 and any(isinstance(value, ast.Call) for value in values)


def _fix(scene: Scene, value: ast.expr) -> Fix | None:
    home = next((n for n, full in scene.imports.aliases.items() if full == "torch.nn"), "")
    if not home and scene.imports.aliases.get("torch") == "torch":
        home = "torch.nn"
    if not home or isinstance(value, ast.Tuple):
        return None
    container = "ModuleDict" if isinstance(value, _DICTS) else "ModuleList"
    return unsafe(scene.replace(value, f"{home}.{container}({scene.text(value)})"))
