"""What a function is given, it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

INPUT = ProbeRule(
    "EX112",
    "input-without-effect",
    Severity.MEDIUM,
    "wrong result",
    Text("a function never reads a tensor that it is called with", "函数从不读取传入的某个张量"),
    Text(
        "a mask, a weight or a target that nothing reads has no effect on the result",
        "没有被读取的掩码、权重或目标对结果没有任何影响",
    ),
    Text("use it, or take the parameter out", "请使用它，或去掉该参数"),
)
SETTING = ProbeRule(
    "EX113",
    "setting-without-effect",
    Severity.LOW,
    "wrong result",
    Text("a module never reads a setting that it is made with", "模块从不读取构造时给出的某个设置"),
    Text("whoever changes the setting changes nothing", "修改该设置不会有任何作用"),
    Text("use it, or take the parameter out", "请使用它，或去掉该参数"),
)
RULES = (INPUT, SETTING)
_ON_PURPOSE = ("_", "unused", "kwargs", "args")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Unread:
    """A parameter that the body of its function does not mention."""

    name: str
    line: int
    function: str


def examine(subject: Subject) -> Examined:
    """Only functions that ran: code that nobody calls may keep what it likes."""
    calls = [item for item in subject.run.calls if item.number == 0]
    if not calls:
        return NOTHING_TO_LOOK_AT
    shown: list[Shown] = []
    for path in dict.fromkeys(item.place.path for item in calls):
        tree = _parsed(subject.run.root / path)
        if tree is None:
            continue
        by_line = {line: node for node in _functions(tree) for line in _first_lines(node)}
        own = [item for item in calls if item.place.path == path]
        for call in own:
            node = by_line.get(call.place.line)
            if node is not None and not _is_shared(node, tree):
                shown += _inputs(call, node, path)
        shown += _settings(tree, {item.name.partition(".")[0] for item in own}, path)
    return Examined(tuple(shown), decided=True)


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _first_lines(node: Function) -> set[int]:
    """A function begins at its first decorator for the interpreter, at `def` for a reader."""
    return {node.lineno, min([node.lineno, *(item.lineno for item in node.decorator_list)])}


def _is_shared(node: Function, tree: ast.Module) -> bool:
    """Several classes have a method of this name: they share a signature, and not all need all of it."""
    same = [item for item in _functions(tree) if item.name == node.name]
    return len(same) > 1


def unread(node: Function) -> Iterator[Unread]:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    read = {
        item.id
        for part in node.body
        for item in ast.walk(part)
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load | ast.Del)
    }
    whole = any(name in read for name in ("locals", "vars"))
    for item in given if not whole and not _is_empty(node) else ():
        if (
            item.arg not in read
            and item.arg not in ("self", "cls", "ctx")
            and not item.arg.startswith(_ON_PURPOSE)
        ):
            yield Unread(item.arg, item.lineno, node.name)


def _is_empty(node: Function) -> bool:
    """A body that only raises or passes: an interface."""
    rest = [item for item in node.body if not _is_text(item)]
    return all(isinstance(item, ast.Pass | ast.Raise) for item in rest)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _inputs(call: Call, node: Function, path: str) -> Iterator[Shown]:
    for item in unread(node):
        value: Any = call.arguments.get(item.name)
        if isinstance(value, torch.Tensor) and value.numel() > 0:
            yield Shown(
                INPUT,
                Place(path, item.line, call.name),
                Text(
                    "`{function}` is given `{name}` ({shape}) and never reads it",
                    "`{function}` 收到 `{name}`（{shape}），却从不读取",
                ),
                {"function": call.name, "name": item.name, "shape": str(tuple(value.shape))},
                (
                    number(
                        "elements that have no effect",
                        "没有作用的元素",
                        value.numel(),
                        "",
                        IN_THE_RUN,
                    ),
                ),
            )


def _settings(tree: ast.Module, classes: set[str], path: str) -> Iterator[Shown]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name not in classes:
            continue
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                for item in unread(method):
                    yield Shown(
                        SETTING,
                        Place(path, item.line, f"{node.name}.__init__"),
                        Text(
                            "`{kind}` never reads its setting `{name}`",
                            "`{kind}` 从不读取其设置 `{name}`",
                        ),
                        {"kind": node.name, "name": item.name},
                    )
