"""An attribute that no line of the class sets ends the program with an AttributeError."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.members import (
    has_subclass,
    is_bound_elsewhere,
    is_completed_elsewhere,
    members_of,
)
from torchstone.lint.facts.signatures import is_ambiguous
from torchstone.lint.knowledge.torch_names import closest
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS240",
    "attribute-never-set",
    torch_from=(0, 1),
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`self.{name}` is set nowhere in `{owner}` or its bases{meant}",
        zh="`{owner}` 及其基类从未设置 `self.{name}`{meant}",
    ),
    why=Text(
        en="the line ends with an AttributeError as soon as it runs",
        zh="执行到这一行时会以 AttributeError 结束",
    ),
    suggest=Text(
        en="set `self.{name}` in `__init__`, or correct the name",
        zh="在 `__init__` 中设置 `self.{name}`，或更正名字",
    ),
    title=Text(en="A class reads an attribute that nothing sets", zh="类读取了从未设置过的属性"),
    page=Text(
        en="""\
Reported for `self.name` in a class whose bases are all known: classes of the project, `nn.Module`, `Dataset`,
`autograd.Function`, `object`. Neither the class, nor a base, nor any file from outside binds the name.

Quiet where attributes come in ways that nobody can see (`__getattr__`, `setattr` with a name that is worked out,
`__dict__`, class decorators), where the name stands in a string (`hasattr`, `register_buffer`), and in classes
that subclasses of the project complete.""",
        zh="""\
检查基类全部已知（项目中的类、`nn.Module`、`Dataset`、`autograd.Function`、`object`）的类中的 `self.name`：类本身、基类
以及其他文件都没有设置这个名字时报告。

不报告：属性以看不到的方式产生（`__getattr__`、名字由计算得出的 `setattr`、`__dict__`、类装饰器）；名字出现在字符串中
（`hasattr`、`register_buffer`）；由项目中的子类补全的类。""",
    ),
    words=("torch", "__getitem__", "model"),
    needs=("class", "self"),
    bad="""\
import torch

class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv1 = torch.nn.Conv1d(size, size, 3)

    def forward(self, x):
        return self.convs1(x)
""",
    good="""\
@@ -9 +9 @@
-        return self.convs1(x)
+        return self.conv1(x)
""",
)
_ERRORS = ("AttributeError", "Exception", "BaseException")


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """One finding for each attribute of a class."""
    if scene.source.cell_starts:
        return
    reported: set[tuple[ast.ClassDef, str]] = set()
    for node in scene.all(ast.Attribute):
        if not isinstance(node.value, ast.Name) or node.value.id != "self":
            continue
        if node.ctx.__class__ is not ast.Load or node.attr.startswith("__"):
            continue
        owner = scene.class_of(node)
        if owner is None or (owner, node.attr) in reported:
            continue
        members = members_of(scene, owner)
        if members is None or node.attr in members or _is_state_of_module(node.attr):
            continue
        reported.add((owner, node.attr))
        if _may_be_there(scene, owner, node):
            continue
        near = closest(node.attr, tuple(members))
        meant = f" (`self.{near}`?)" if near else ""
        yield RULE.at(node, name=node.attr, owner=owner.name, meant=meant)


_NOT_IN_MODULE = Text(
    en="the module `{owner}` of this project has no `{name}`{meant}",
    zh="本项目的模块 `{owner}` 中没有 `{name}`{meant}",
)


@RULE.on_file
def check_modules(scene: Scene) -> Iterator[Hit]:
    """`models.ImageModel` where the project's `models` has no such name."""
    project = scene.project
    locals_ = {
        local
        for local, full in scene.imports.aliases.items()
        if full.partition(".")[0] in project.tops and not full.startswith("torch.")
    }
    reported: set[str] = set()
    for node in scene.all(ast.Attribute) if locals_ else ():
        base = node.value
        while isinstance(base, ast.Attribute):
            base = base.value
        if not isinstance(base, ast.Name) or base.id not in locals_:
            continue
        full = scene.qualified(node)
        module, _, name = full.rpartition(".")
        if full in reported or not isinstance(node.ctx, ast.Load) or name.startswith("__"):
            continue
        other = _module_without(scene, module, name)
        if other is None or is_ambiguous(scene, node) or _is_expected(scene, node):
            continue
        reported.add(full)
        near = closest(name, tuple(other.bound))
        meant = f" (`{near}`?)" if near else ""
        yield RULE.at(node, say=_NOT_IN_MODULE, name=name, owner=module, meant=meant)


def _module_without(scene: Scene, module: str, name: str) -> Scene | None:
    """The file of a module of the project that does not have a name in any way that can be seen."""
    project = scene.project
    # a bare `logging` inside a package is Python's own, whatever file stands beside it
    path = project.find(module, scene.path) if "." in module else None
    other = project.load(path, scene) if path else None
    if other is None or name in other.bound or name in other.imports.aliases:
        return None
    if other.imports.stars or "__getattr__" in other.bound or "globals" in other.calls:
        return None
    if project.find(f"{module}.{name}", scene.path) or "__all__" in other.bound:
        return None
    return None if is_bound_elsewhere(project, name, by_subclass=False) else other


def _is_state_of_module(name: str) -> bool:
    """`_parameters`, `_forward_hooks` and the like belong to every module."""
    return name.startswith("_") and ("hook" in name or name in _STATE)


_STATE = frozenset(
    "_parameters _buffers _modules _non_persistent_buffers_set _version _apply _call_impl "
    "_get_name _save_to_state_dict _load_from_state_dict _named_members _slow_forward".split()
)


def _may_be_there(scene: Scene, owner: ast.ClassDef, node: ast.Attribute) -> bool:
    first = scene.function(node)
    if first is None or not any(row.arg == "self" for row in first.args.args):
        return True  # a closure, or a function that the class was given
    if is_completed_elsewhere(scene, owner) or _is_expected(scene, node):
        return True
    return is_bound_elsewhere(scene.project, node.attr, has_subclass(scene.project, owner))


def _is_expected(scene: Scene, node: ast.AST) -> bool:
    """Whether a handler around the place is there for just that error."""
    return any(
        isinstance(up, ast.Try)
        and any(
            item.type is None or any(word in scene.text(item.type) for word in _ERRORS)
            for item in up.handlers
        )
        for up in scene.ancestors(node)
    )
