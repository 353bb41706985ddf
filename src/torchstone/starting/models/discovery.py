"""Which classes of a project are models, and with which expressions the project itself makes them. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_BASES = ("Module", "LightningModule", "PreTrainedModel", "ModelMixin")
_MOST_EXPRESSIONS = 6
_SKIPPED = ("test", "tests", "setup.py", "conftest.py", "docs")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a constructor must be given."""

    name: str
    annotation: str = ""


@dataclass(frozen=True, slots=True)
class ModelClass:
    """A class whose instances are trained."""

    path: str
    name: str
    line: int
    required: tuple[Argument, ...]
    expressions: tuple[str, ...]
    """How the project makes it: calls with literal arguments, and functions without required ones."""
    parts: int
    """Other models that its code names: a whole network has more of them than a layer."""
    used: bool
    """Another model names it: it is a part."""


@dataclass(slots=True)
class _Gathered:
    classes: list[tuple[str, ast.ClassDef]] = field(default_factory=list)
    calls: dict[str, list[str]] = field(default_factory=dict)
    """Expressions by the name of what they call."""
    makers: dict[str, list[str]] = field(default_factory=dict)
    """Functions without required arguments, by each name that they call."""


def find_models(root: Path, files: Iterable[Path]) -> tuple[ModelClass, ...]:
    """Whole networks first, then those with most parts."""
    gathered = _Gathered()
    for path in files:
        name = path.relative_to(root).as_posix()
        if any(part in _SKIPPED or part.startswith("test_") for part in name.split("/")):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue  # what cannot be read is reported by the tools that read everything
        _gather(tree, name, gathered)
    names = {node.name for _, node in gathered.classes}
    uses = {
        id(node): (_named(node) | _given(node.name, gathered)) & names
        for _, node in gathered.classes
    }
    found = [
        ModelClass(
            path,
            node.name,
            node.lineno,
            tuple(_required(node)),
            tuple(
                dict.fromkeys(
                    (*gathered.calls.get(node.name, ()), *gathered.makers.get(node.name, ()))
                )
            )[:_MOST_EXPRESSIONS],
            len(uses[id(node)] - {node.name}),
            any(node.name in uses[id(other)] for _, other in gathered.classes if other is not node),
        )
        for path, node in gathered.classes
    ]
    found.sort(key=lambda item: (item.used, -item.parts, item.path, item.line))
    first = {item.path: item for item in reversed(found)}  # one of each file, before the others
    return tuple(sorted(found, key=lambda item: (item.used, first[item.path] is not item)))


def _named(node: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def _given(name: str, gathered: _Gathered) -> set[str]:
    """What the project hands a class when it makes one: the kind of its blocks."""
    texts = gathered.calls.get(name, ())
    return {found for text in texts for found in _named(ast.parse(text, mode="eval"))} - {name}


def _gather(tree: ast.Module, path: str, gathered: _Gathered) -> None:
    gathered.classes += [
        (path, node) for node in tree.body if isinstance(node, ast.ClassDef) and _is_model(node)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _called(node)) and _is_literal(node):
            text = f"{name}({', '.join(map(ast.unparse, (*node.args, *node.keywords)))})"
            gathered.calls.setdefault(name, []).append(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not _needed(node.args):
            for item in ast.walk(node):
                if isinstance(item, ast.Call) and (name := _called(item)):
                    gathered.makers.setdefault(name, []).append(f"{node.name}()")


def _is_model(node: ast.ClassDef) -> bool:
    """It computes something, and is a module as far as its file says."""
    bases = {
        base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        for base in node.bases
    }
    methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    return "forward" in methods and (bool(bases & set(_BASES)) or "__init__" in methods)


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _is_literal(node: ast.Call) -> bool:
    """Every argument is a constant, a list of them, or a class by its name."""
    return all(_is_plain(item) for item in node.args) and all(
        item.arg and _is_plain(item.value) for item in node.keywords
    )


def _is_plain(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_is_plain, node.elts))
    if isinstance(node, ast.UnaryOp):
        return _is_plain(node.operand)
    if isinstance(node, ast.Attribute):  # nn.ReLU
        return isinstance(node.value, ast.Name) and node.attr[:1].isupper()
    return isinstance(node, ast.Name) and node.id[:1].isupper()


def _needed(arguments: ast.arguments) -> list[ast.arg]:
    """Arguments without a default."""
    plain = [*arguments.posonlyargs, *arguments.args]
    first = plain[: len(plain) - len(arguments.defaults)]
    named = [
        item
        for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    return [*first, *named]


def _required(node: ast.ClassDef) -> Iterator[Argument]:
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            for argument in _needed(item.args)[1:]:
                kind = ast.unparse(argument.annotation) if argument.annotation else ""
                yield Argument(argument.arg, kind)
