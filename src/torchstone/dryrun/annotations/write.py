"""Annotations for functions that have none, as edits of their source and as a diff."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.files import write_atomically
from torchstone.core.fix import Edit, apply_edits
from torchstone.core.lines import split_lines
from torchstone.dryrun.annotations.axis_names import AxisNames, arrays_of, shapes_of
from torchstone.dryrun.annotations.positions import after_parameters, column, import_line
from torchstone.dryrun.record import ObservedFunction

Function = ast.FunctionDef | ast.AsyncFunctionDef
_KINDS = {"bool": "Bool", "uint8": "UInt8", "int8": "Int", "int16": "Int", "int32": "Int",
          "int64": "Int", "complex64": "Complex", "complex128": "Complex"}  # fmt: skip
_PLAIN = ("Tensor", "torch.Tensor")
"""Annotations that say nothing about the shape, and are replaced by ones that do."""


@dataclass(frozen=True, slots=True)
class AnnotatedFile:
    """One file with the annotations in it; nothing is written yet."""

    path: Path
    old: str
    new: str
    functions: int

    def diff(self) -> str:
        name = str(self.path)
        lines = difflib.unified_diff(
            self.old.splitlines(keepends=True), self.new.splitlines(keepends=True), name, name
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)

    def write(self) -> bool:
        """Write it, unless the file has changed since it was read."""
        if _read(self.path) != self.old:
            return False
        write_atomically(self.path, self.new)
        return True


def annotate(functions: Iterable[ObservedFunction], root: Path) -> list[AnnotatedFile]:
    """The files below a folder whose functions were seen, with annotations where there were none."""
    seen = merged(functions)
    names = AxisNames(seen)
    by_path: dict[str, list[ObservedFunction]] = {}
    for item in seen:
        by_path.setdefault(item.place.path, []).append(item)
    found = (_annotated(Path(path), items, names) for path, items in by_path.items()
             if Path(path).resolve().is_relative_to(root.resolve()))  # fmt: skip
    return [item for item in found if item is not None]


def merged(functions: Iterable[ObservedFunction]) -> list[ObservedFunction]:
    """One entry for a function that was seen in several runs."""
    found: dict[tuple[str, int], ObservedFunction] = {}
    for item in functions:
        key = (item.place.path, item.place.line)
        before = found.get(key, ObservedFunction(item.place))
        calls = tuple(dict.fromkeys((*before.calls, *item.calls)))
        others = tuple(dict.fromkeys((*before.not_tensors, *item.not_tensors)))
        found[key] = ObservedFunction(item.place, calls, others)
    return list(found.values())


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _annotated(
    path: Path, functions: list[ObservedFunction], names: AxisNames
) -> AnnotatedFile | None:
    try:
        text = _read(path)
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    module = _Module(path, text, tree)
    defined = {_first_line(node): node for node in ast.walk(tree) if isinstance(node, Function)}
    edits: list[Edit] = []
    count = 0
    for item in functions:
        node = defined.get(item.place.line)
        made = list(module.annotated(node, item, names)) if node is not None else []
        edits += made
        count += bool(made)
    if not edits:
        return None
    new = apply_edits(text, [*edits, *module.imports()])
    ast.parse(new)  # what is written must be Python
    return AnnotatedFile(path, text, new, count)


def _first_line(node: Function) -> int:
    """As the interpreter counts it: a decorator comes first."""
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])


class _Module:
    """One file: which names it has, and which the annotations need."""

    def __init__(self, path: Path, text: str, tree: ast.Module) -> None:
        self._path = str(path)
        self._text = text
        self._lines = split_lines(text)
        self._tree = tree
        self._bound = dict(_imported(tree))
        self._needed: dict[str, None] = {}
        self._tensor = "torch.Tensor" if self._bound.get("torch") == "torch" else "Tensor"

    def annotated(
        self, node: Function, seen: ObservedFunction, names: AxisNames
    ) -> Iterator[Edit]:  # fmt: skip
        """Edits for the parameters and the result; none when one of them says its shape already."""
        written = [ast.unparse(item.annotation) for item in _parameters(node) if item.annotation]
        written += [ast.unparse(node.returns)] if node.returns else []
        if any("[" in text and ("Tensor" in text or "Array" in text) for text in written):
            return
        shapes = shapes_of(seen)
        for item in _parameters(node):
            if item.arg in shapes and (kind := self._hint(item.arg, seen, names)):
                yield from self._parameter(item, kind)
        if result := self._result(seen, shapes, names):
            yield from self._returns(node, result)

    def _hint(self, name: str, seen: ObservedFunction, names: AxisNames) -> str:
        others = {kind for one, kind in seen.not_tensors if one == name}
        if others - {"NoneType"}:
            return ""
        dtypes = {item.dtype for item in arrays_of(seen) if item.name == name}
        shapes = shapes_of(seen)[name]
        text = f'{self._kind(dtypes)}[{self._tensor}, "{names.text(shapes)}"]'
        return f"{text} | None" if others else text

    def _kind(self, dtypes: set[str]) -> str:
        kinds = {_KINDS.get(dtype, "Float") for dtype in dtypes}
        kind = kinds.pop() if len(kinds) == 1 else "Shaped"
        own = self._bound.get(kind, "")
        if own and own != f"jaxtyping.{kind}":  # the file means something else by this name
            self._needed["jaxtyping"] = None
            return f"jaxtyping.{kind}"
        self._needed[kind] = None
        return kind

    def _result(
        self, seen: ObservedFunction, shapes: dict[str, list[tuple[int, ...]]], names: AxisNames
    ) -> str:  # fmt: skip
        if "return" in shapes:
            return self._hint("return", seen, names)
        parts = [name for name in shapes if name.startswith("return[")]
        every = all(sum(item.name == name for item in arrays_of(seen)) == len(seen.calls) for name in parts)  # fmt: skip
        kinds = {kind for one, kind in seen.not_tensors if one == "return"}
        if not parts or not every or kinds != {"tuple"}:
            return ""
        return f"tuple[{', '.join(self._hint(name, seen, names) for name in parts)}]"

    def _parameter(self, item: ast.arg, kind: str) -> Iterator[Edit]:
        if item.annotation is not None:
            if ast.unparse(item.annotation) in _PLAIN:
                yield self._replace(item.annotation, kind)
            return
        line = item.end_lineno or item.lineno
        at = column(self._lines, line, item.end_col_offset or 0)
        default = self._lines[line - 1][at : at + 1] == "="
        yield Edit(self._path, line, at, line, at + default, f": {kind}" + " = " * default)

    def _returns(self, node: Function, kind: str) -> Iterator[Edit]:
        if node.returns is not None:
            if ast.unparse(node.returns) in _PLAIN:
                yield self._replace(node.returns, kind)
            return
        place = after_parameters(self._lines, node)
        if place is not None:
            yield Edit(self._path, *place, *place, f" -> {kind}")

    def _replace(self, node: ast.expr, text: str) -> Edit:
        end = node.end_lineno or node.lineno
        return Edit(
            self._path, node.lineno, column(self._lines, node.lineno, node.col_offset), end,
            column(self._lines, end, node.end_col_offset or 0), text,
        )  # fmt: skip

    def imports(self) -> Iterator[Edit]:
        """What the annotations need and the file does not have."""
        kinds = [name for name in sorted(self._needed) if name != "jaxtyping" and name not in self._bound]  # fmt: skip
        lines = ["import jaxtyping"] * ("jaxtyping" in self._needed and "jaxtyping" not in self._bound)  # fmt: skip
        lines += [f"from jaxtyping import {', '.join(kinds)}"] if kinds else []
        if self._tensor == "Tensor" and "Tensor" not in self._bound:
            lines.append("from torch import Tensor")
        if lines:
            ending = "\r\n" if self._lines and self._lines[0].endswith("\r\n") else "\n"
            at = import_line(self._tree)
            yield Edit(self._path, at, 0, at, 0, "".join(line + ending for line in lines))


def _parameters(node: Function) -> list[ast.arg]:
    given = node.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that the module binds at its top level, with what an import makes them mean."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                yield name, alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name, "."
