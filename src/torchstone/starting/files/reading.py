"""The code that reads a file: the functions and classes that the program was in when it looked for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchstone.core.place import Place

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Reading:
    """Parts of the source, the nearest to the look-up first."""

    near: tuple[ast.AST, ...] = ()
    """Classes, or functions outside of classes, that the look-up was made in."""
    files: tuple[ast.Module, ...] = ()
    text: str = ""
    """Of what is near."""
    inner: str = ""
    """Of the functions that the look-up was made in: they call what reads the file."""

    def mentions(self, *words: str) -> bool:
        """Whether one of these words stands in the code near by."""
        return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text) for word in words)

    def reads_with(self, *words: str) -> bool:
        """Whether one of these words stands in the functions that looked for the file."""
        return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.inner) for word in words)

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of functions of these names, the nearest first."""
        for tree in (*self.near, *self.files):
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and name_of(node.func) in names:
                    yield node

    def subscripts(self) -> tuple[str, ...]:
        """Texts by which something is subscripted: near by, or else anywhere in the files."""
        return _subscripts(self.near) or _subscripts(self.files)


def read_code(places: list[tuple[Place, str]]) -> Reading:
    """From the lines that the look-up went through, the innermost first, with the sources of their files."""
    near: list[ast.AST] = []
    files: dict[str, ast.Module] = {}
    texts: list[str] = []
    inner: list[str] = []
    for place, text in places:
        try:
            tree = files.get(text) or ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        files[text] = tree
        scope = _outermost(tree, place.line)
        function = _innermost(tree, place.line)
        if function is not None:
            inner.append(ast.get_source_segment(text, function) or "")
        if scope is not None and scope not in near:
            near.append(scope)
            texts.append(ast.get_source_segment(text, scope) or "")
        elif scope is None and place.line:
            texts.append("\n".join(text.splitlines()[max(0, place.line - 20) : place.line + 20]))
    joined = "\n".join(texts)
    return Reading(tuple(near), tuple(files.values()), joined, "\n".join(inner[:2]) or joined)


def _outermost(tree: ast.Module, line: int) -> ast.stmt | None:
    for node in tree.body:
        if isinstance(node, _SCOPES) and node.lineno <= line <= (node.end_lineno or 0):
            return node
    return None


def _innermost(tree: ast.Module, line: int) -> ast.stmt | None:
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _SCOPES[:2]) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(found, key=lambda node: node.lineno, default=None)


def _subscripts(trees: tuple[ast.AST, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        inner = node.slice if isinstance(node, ast.Subscript) else None
        for item in inner.elts if isinstance(inner, (ast.List, ast.Tuple)) else (inner,):
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                if re.fullmatch(r"[\w .#-]{1,40}", item.value):
                    found[item.value] = None
    return tuple(found)[:40]


def name_of(node: ast.expr) -> str:
    """The last name of what is called: `load` of `np.load`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
