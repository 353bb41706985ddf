"""Parts of a syntax tree: what they are called, and what is left as it is."""

from __future__ import annotations

import ast
import functools
import warnings
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
_PLAIN_BUILTINS = frozenset(
    "super locals globals vars dir eval exec breakpoint input print isinstance issubclass len range "
    "enumerate zip type hasattr getattr setattr delattr id repr str open iter callable property "
    "staticmethod classmethod list tuple dict set frozenset map filter reversed hash help format "
    "object slice bytearray memoryview __import__ compile bool".split()
)
"""Builtins that look at their caller's frame, or hand data on without making any."""
_LOGGING = frozenset("debug info warning error exception critical log warn".split())
"""They name their caller's line; a layer between would change it."""
_METHODS_WITHOUT_DATA = frozenset(
    "append strip lstrip rstrip lower upper startswith endswith items keys join".split()
)
"""Methods of lists, dicts and texts that no array, tensor or image has."""


@functools.cache
def tests_of_constants_stay() -> bool:
    """Whether the compiler leaves `"text" is None` to the run, as it does up to Python 3.13."""
    tree = ast.parse("a if 0 is None else b", mode="eval")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return compile(tree, "", "eval").co_names == ("a", "b")


def is_left_alone(func: ast.expr) -> bool:
    if isinstance(func, ast.Name):
        return func.id in _PLAIN_BUILTINS or func.id.startswith("_torchstone_")
    if isinstance(func, ast.Attribute) and func.attr in _METHODS_WITHOUT_DATA:
        return True
    if isinstance(func, ast.Attribute) and func.attr in _LOGGING:
        base = text_of(func.value).lower()
        return "log" in base or base == "warnings"
    return False


def holds_item(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(holds_item(element) for element in target.elts)
    if isinstance(target, ast.Starred):
        return holds_item(target.value)
    return isinstance(target, ast.Subscript)


def names_of(target: ast.expr) -> tuple[str, ...]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return tuple(name for element in target.elts for name in names_of(element) or ("",))
    if isinstance(target, ast.Starred):
        return names_of(target.value)
    text = text_of(target)
    return (text,) if text else ()


def text_of(node: ast.expr) -> str:
    """A name as it is written: `x`, `self.mean`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := text_of(node.value)):
        return f"{base}.{node.attr}"
    if isinstance(node, ast.Starred):
        return text_of(node.value)
    return ""


def load_again(target: ast.Name | ast.Attribute) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    base = ast.copy_location(ast.Name(text_of(target.value), ast.Load()), target)
    return ast.copy_location(ast.Attribute(base, target.attr, ast.Load()), target)


def load_name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def store_name(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


def place_at(made: Node, node: ast.AST) -> Node:
    return ast.copy_location(made, node)
