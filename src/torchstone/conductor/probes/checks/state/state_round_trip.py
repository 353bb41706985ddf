"""A fresh module that loads the state dict of another gives the same outputs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import torch
from torch import nn

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR212", "state-outside-state-dict", Severity.MEDIUM, "wrong result",
    Text("a tensor that training changes is in no state dict", "训练会改变的张量不在状态字典中"),
    Text("a plain tensor attribute is neither saved nor loaded nor moved to the device: a resumed run starts it anew",
         "普通张量属性既不保存、不加载，也不随设备移动：恢复的运行会重新初始化它"),
    Text("register it with register_buffer()", "使用 register_buffer() 注册"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    told: set[tuple[type, str]] = set()
    for module in run.modules:
        run.asks(RULE)
        for name, value in vars(module).items():
            if (
                not isinstance(value, torch.Tensor)
                or (type(module), name) in told
                or value.requires_grad
            ):
                continue
            if (
                value.numel() < 1
                or not value.is_floating_point()
                or not _is_kept(type(module), name)
            ):
                continue
            told.add((type(module), name))
            place = _made_at(run, type(module), name)
            if place:
                yield Shown(
                    RULE, place,
                    Text("self.{name} of {kind} is updated in training and is no buffer",
                         "{kind} 的 self.{name} 在训练中被更新，却不是 buffer"),
                    {"name": name, "kind": type(module).__name__},
                    (number("values outside the state dict", "状态字典之外的数值", value.numel(), "", IN_THE_RUN),),
                    offered(run.root, place, _register),
                )  # fmt: skip


def _is_kept(kind: type[nn.Module], name: str) -> bool:
    """Whether the class makes it in its constructor and changes it later from its own value."""
    try:
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return False
    made = changed = False
    for method in ast.walk(tree):
        if not isinstance(method, ast.FunctionDef):
            continue
        for node in ast.walk(method):
            if method.name == "__init__" and isinstance(node, ast.Assign):
                made = made or any(_is_own(item, name) for item in node.targets)
            elif method.name != "__init__":
                changed = changed or _changes(node, name)
    return made and changed


def _changes(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return _is_own(node.target, name)
    if isinstance(node, ast.Assign) and any(_is_own(item, name) for item in node.targets):
        return any(_is_own(item, name) for item in ast.walk(node.value))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inner = [item for item in ast.walk(node.func.value) if _is_own(item, name)]
        return bool(inner) and node.func.attr.endswith("_") and not node.func.attr.endswith("__")
    return False


def _is_own(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == name
            and isinstance(node.value, ast.Name) and node.value.id == "self")  # fmt: skip


def _made_at(run: Recording, kind: type[nn.Module], name: str) -> Place:
    path = inspect.getsourcefile(kind) or ""
    root = f"{run.root.resolve()}/"
    lines, first = inspect.getsourcelines(kind)
    for number_, line in enumerate(lines):
        if path.startswith(root) and f"self.{name} =" in line:
            return Place(path.removeprefix(root), first + number_, f"{kind.__qualname__}.__init__")
    return Place("", 0)


def _register(file: SourceFile, place: Place) -> Iterator[Fix]:
    statement = file.statement(place.line)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        name, value = statement.targets[0].attr, file.source(statement.value)
        yield fix([file.replace(statement, f'self.register_buffer("{name}", {value})')],
                  "register it as a buffer", "注册为 buffer")  # fmt: skip
