"""Places in a file at which something can be put in."""

from __future__ import annotations

import ast
import io
import tokenize


def column(lines: list[str], line: int, offset: int) -> int:
    """Characters, where the syntax tree counts UTF-8 bytes."""
    return len(lines[line - 1].encode("utf-8")[:offset].decode("utf-8", "replace"))


def after_parameters(
    lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef
) -> tuple[int, int] | None:
    """The place behind the parenthesis that closes the parameters of a function."""
    text = "".join(lines[node.lineno - 1 : node.body[0].lineno])
    depth = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.string in ("(", "["):
                depth += 1
            elif token.string in (")", "]"):
                depth -= 1
                if depth == 0 and token.string == ")":
                    return node.lineno + token.end[0] - 1, token.end[1]
    except (tokenize.TokenError, IndentationError):
        return None
    return None


def import_line(tree: ast.Module) -> int:
    """The line before which an import can stand: behind the first block of imports."""
    last = 0
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (is_docstring and not last):
            last = node.end_lineno or node.lineno
        elif last:
            break
        else:
            return node.lineno
    return last + 1
