"""The structure of a value that is read from a file, from what the code does with it.

`data = json.load(file)`, then `for frame in data["frames"]` and `open(frame["path"])`: an object with a list of
objects with a path. Only the text of the program is looked at.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass, field
from typing import Literal

from torchstone.starting.files.reading import Reading, name_of

Kind = Literal["", "mapping", "list", "text", "number", "path", "matrix"]
_LOADS = ("load", "loads", "safe_load", "jload", "read_json", "load_json", "loadmat")
_SAME = (
    "enumerate",
    "list",
    "sorted",
    "tqdm",
    "iter",
    "reversed",
    "tuple",
    "copy",
    "deepcopy",
    "zip",
    "dict",
    "get",
)
_TEXT_METHODS = (
    "split",
    "strip",
    "lower",
    "upper",
    "replace",
    "startswith",
    "endswith",
    "encode",
    "format",
)
_LENGTH = 64
"""Elements of made lists: a few batches of the small kind."""
_MATRIX = 4
_WORDS = ("the", "a", "small", "model", "runs", "red", "house", "and", "sees", "good", "river")


@dataclass
class Node:
    """What is known of one value; filled while the code is read."""

    kind: Kind = ""
    keys: dict[str, Node] = field(default_factory=dict)
    element: Node | None = None

    def key(self, name: str) -> Node:
        self.kind = "mapping"
        return self.keys.setdefault(name, Node())

    def item(self) -> Node:
        if self.kind != "mapping":
            self.kind = "list"
        self.element = self.element or Node()
        return self.element


def structure_of(reading: Reading) -> Node | None:
    """The value that is loaded near by; None where nothing is."""
    for tree in (*reading.near, *reading.files):
        found = _Reader()
        found.read(tree)
        if found.root is not None and (found.root.kind or found.root.keys):
            return found.root
    return None


class _Reader:
    """Follows a loaded value through assignments, loops and subscripts, by the text of expressions."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._known: dict[str, Node] = {}

    def read(self, tree: ast.AST) -> None:
        for _ in range(2):  # what a method uses may be set in one that is written below it
            for node in ast.walk(tree):
                self._statement(node)

    def _statement(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value)
            if value is not None:
                for target in node.targets:
                    self._bind(target, value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            value = self._value(node.iter)
            if value is not None:
                self._bind_element(node.target, value, node.iter)
        elif isinstance(node, ast.expr):
            self._value(node)

    def _bind(self, target: ast.expr, value: Node) -> None:
        if isinstance(target, (ast.Name, ast.Attribute)):
            self._known[ast.unparse(target)] = value
        elif isinstance(target, ast.Subscript):  # one of several of a kind
            self._known[ast.unparse(target.value)] = Node("list", element=value)

    def _bind_element(self, target: ast.expr, value: Node, made: ast.expr) -> None:
        called = name_of(made.func) if isinstance(made, ast.Call) else ""
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        if called in ("enumerate", "items"):
            parts = parts[1:]
        elif called == "keys" or (value.kind == "mapping" and not called):
            return
        if len(parts) == 1:
            self._bind(parts[0], value.item())

    def _value(self, node: ast.expr) -> Node | None:
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._known.get(ast.unparse(node))
        if isinstance(node, ast.Subscript):
            held = self._value(node.value)
            if held is None:
                return None
            named = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
            return held.key(str(node.slice.value)) if named else held if isinstance(node.slice, ast.Slice) else held.item()  # type: ignore[attr-defined]  # fmt: skip
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.BinOp, ast.Compare)):
            for side in (
                node.left,
                *(node.comparators if isinstance(node, ast.Compare) else (node.right,)),
            ):
                self._mark(side, "text" if _has_text(node) else "number")
        return None

    def _call(self, node: ast.Call) -> Node | None:
        name = name_of(node.func)
        if name in _LOADS and self._is_load(node):
            self.root = self.root or Node()
            return self.root
        owner = self._value(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if owner is not None:
            return self._method(owner, name, node)
        if name in _SAME and node.args:
            return self._value(node.args[0])
        for item in node.args:
            if name in ("int", "float", "range", "LongTensor", "FloatTensor"):
                self._mark(item, "number")
            elif name in ("join", "open", "imread", "imread_rgb", "exists", "read_image", "Path"):
                self._mark(item, "path")
            elif name in ("array", "asarray", "tensor", "Tensor", "from_numpy", "stack"):
                self._mark(item, "matrix")
            elif name == "len":
                held = self._value(item)
                if held is not None and not held.kind:
                    held.item()
        return None

    def _method(self, owner: Node, name: str, node: ast.Call) -> Node | None:
        if name == "get" and node.args and isinstance(node.args[0], ast.Constant):
            return owner.key(str(node.args[0].value))
        if name in ("items", "values", "keys"):
            owner.kind = "mapping"
            owner.item()
            return owner
        if name in _TEXT_METHODS:
            owner.kind = owner.kind or "text"
            return None
        return owner if name in ("copy", "to_dict", "item", "tolist") else None

    def _mark(self, node: ast.expr, kind: Kind) -> None:
        if isinstance(node, ast.BinOp) and kind == "path":  # `name + ".png"`
            self._mark(node.left, kind)
            self._mark(node.right, kind)
            return
        held = self._value(node)
        if held is not None and held.kind in ("", "text", "number") and not held.keys:
            held.kind = kind

    def _is_load(self, node: ast.Call) -> bool:
        text = ast.unparse(node.func)
        return not text.startswith(("torch.", "np.", "numpy.", "self.model", "joblib.dump"))


def _has_text(node: ast.AST) -> bool:
    return any(
        isinstance(item, ast.Constant) and isinstance(item.value, str) for item in ast.walk(node)
    )


def made_value(
    node: Node | None, draw: random.Random, suffix: str = ".png", name: str = ""
) -> object:
    """A value of this structure."""
    if node is None:
        return []
    if node.kind == "mapping":
        made = {key: made_value(child, draw, suffix, key) for key, child in node.keys.items()}
        if node.element is not None and not made:
            return {
                f"{place:04d}": made_value(node.element, draw, suffix, name) for place in range(8)
            }
        return made
    if node.kind == "list":
        return [
            _numbered(made_value(node.element, draw, suffix, name), place)
            for place in range(_LENGTH)
        ]
    if node.kind == "matrix":
        return [[float(row == column) for column in range(_MATRIX)] for row in range(_MATRIX)]
    if node.kind == "path":
        return "images/0000" + suffix
    if node.kind == "number" or (not node.kind and _names_number(name)):
        return draw.randint(0, 9) if _names_class(name) else round(draw.uniform(0.1, 1.0), 3)
    return " ".join(draw.choices(_WORDS, k=8))


def _numbered(value: object, place: int) -> object:
    """Paths of a list are of different files, eight in all."""
    if isinstance(value, dict):
        return {key: _numbered(item, place) for key, item in value.items()}
    return value.replace("0000", f"{place % 8:04d}") if isinstance(value, str) else value


def _names_class(name: str) -> bool:
    return any(
        part in name.lower()
        for part in ("label", "class", "target", "index", "num", "category", "id")
    )


def _names_number(name: str) -> bool:
    return _names_class(name) or any(
        part in name.lower()
        for part in ("score", "angle", "width", "height", "size", "length", "count")
    )
