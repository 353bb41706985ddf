"""Which dataset or function is cut out: the one that reads data and does nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torchstone.core.place import Place
from torchstone.starting.cuts.forms import Leaf
from torchstone.starting.cuts.structure import gives_something, leaves_of
from torchstone.starting.files.readers import READERS, package_of

_TRAINS = frozenset(
    "backward step zero_grad fit train parameters cuda_stream ArgumentParser add_argument Adam AdamW SGD".split()
)
"""Called in code that trains or says how: such code is what is looked at, and is never cut out."""
_READING = re.compile(
    r"(^|_)(open|reads?|load|listdir|glob|walk|scandir|imread|fetch|download|exists|is_?file|is_?dir|parse)"
    r"|fromfile|fromtxt|from_json|loadtxt|memmap|iterdir",
    re.I,
)
_LINES = 400
"""Of a function: longer ones are programs."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A class, or a function that is not in a class."""

    path: str
    scope: str
    line: int
    is_dataset: bool
    leaves: tuple[Leaf, ...]


def find_cuts(stack: Sequence[Place], source: Callable[[str], str]) -> tuple[Cut, ...]:
    """Datasets that the exception went through, then functions that read or call one that does, the
    innermost first as in `stack`."""
    datasets: list[Cut] = []
    functions: list[Cut] = []
    reads = False
    for place in stack:
        reads = reads or package_of(place.path) in READERS
        try:
            tree = ast.parse(source(place.path))
        except (SyntaxError, ValueError, RecursionError):
            continue
        around = list(_around(tree, place.line))
        datasets += [
            Cut(place.path, node.name, node.lineno, True, leaves_of(item))
            for node in reversed(around)
            if isinstance(node, ast.ClassDef) and (item := _item_method(node))
        ]
        reads = reads or bool(datasets) or any(map(_reads, around))
        if reads and around and isinstance(around[0], ast.FunctionDef) and _only_reads(around[0]):
            made = around[0]
            functions.append(Cut(place.path, made.name, made.lineno, False, leaves_of(made)))
    return (*datasets, *functions)


def _around(tree: ast.AST, line: int) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """Classes and functions that a line is in, the outermost first."""
    for node in ast.iter_child_nodes(tree):
        inside = getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)
        if inside and isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node
            yield from _around(node, line)
        elif inside or not hasattr(node, "lineno"):
            yield from _around(node, line)


def _item_method(node: ast.ClassDef) -> ast.FunctionDef | None:
    """What gives one sample: of a class that has samples by number, or that is iterated as a dataset."""
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    bases = " ".join(ast.unparse(base) for base in node.bases)
    is_dataset = re.search(r"dataset|Folder\b", bases, re.I) is not None
    if "Module" in bases:
        return None
    if "__getitem__" in methods and (is_dataset or "__len__" in methods):
        return methods["__getitem__"]
    return methods.get("__iter__") if is_dataset else None


def _reads(node: ast.AST) -> bool:
    """Whether something is called by a name of reading."""
    return any(
        _READING.search(
            inner.func.attr
            if isinstance(inner.func, ast.Attribute)
            else getattr(inner.func, "id", "")
        )
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call)
    )


def _only_reads(function: ast.FunctionDef) -> bool:
    if (function.end_lineno or 0) - function.lineno > _LINES or not gives_something(function):
        return False
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    }
    return not called & _TRAINS
