"""A claim about a line of the project, and a small test that fails as long as the claim is true."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.finding import Severity
from torchstone.core.text import Text

MOST_CHARACTERS = 20_000
"""Of a check's source: it is read by a person before it is believed."""
_MOST_CLAIM = 500
HELPERS = (
    "torchstone.checks runs the project's programs: run(script, *arguments, steps=4), run_ranks(count, script, *arguments) "
    "and join_ranks(ranks) give records with losses, rates, gradients, weights and returned; record(script, function) gives "
    "calls with arguments and result; compare(one, other, tolerance) names the first difference"
)
"""For whoever writes a check: what it may use beside the project's own code."""
_TESTS = ("test", "check")
_CLOSED_MODULES = frozenset(("inspect", "ast", "tokenize", "linecache", "dis", "mock"))
_CODE_ATTRIBUTES = frozenset(("__code__", "__doc__", "co_code", "co_consts", "co_names"))
_PATCHING = frozenset(("monkeypatch", "setattr", "delattr", "mocker"))


@dataclass(frozen=True, slots=True)
class Check:
    """A claim and the code that shows it; without code it is only a claim."""

    id: str
    path: str
    line: int
    claim: str
    severity: Severity
    code: str = ""
    by: str = "person"


def make_check(
    path: str, line: int, claim: str, severity: str, code: str, by: str, root: Path
) -> Check:
    """A check whose place is a file of the project; an error says what is wrong with it."""
    pure = PurePosixPath(path)
    inside = path and path.isprintable() and not pure.is_absolute() and ".." not in pure.parts
    if not inside or not (root / path).is_file() or (root / path).is_symlink():
        raise _refused("file", repr(path[:120]), "a file of the project, relative to its root")
    lines = len(read_regular(root / path, 16 << 20).splitlines())
    if not 1 <= line <= max(lines, 1):
        raise _refused("line", str(line), f"a line of {path}: 1 to {lines}")
    if not claim.strip() or len(claim) > _MOST_CLAIM:
        raise _refused("claim", f"{len(claim)} characters", f"1 to {_MOST_CLAIM} characters")
    if severity not in tuple(Severity):
        raise _refused("severity", repr(severity[:20]), "HIGH, MEDIUM or LOW")
    if len(code) > MOST_CHARACTERS:
        raise _refused("check", f"{len(code):,} characters", f"at most {MOST_CHARACTERS:,}")
    claim = " ".join(claim.split())
    basis = "\x1f".join((path, str(line), claim, code))
    name = hashlib.sha256(basis.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    check = Check(f"c-{name}", path, line, claim, Severity(severity), code, by)
    if code and (why := refuse_code(check)):
        raise _refused("check", why, "a test of behaviour; see docs/checks.md")
    return check


def _refused(where: str, given: str, expected: str) -> InputError:
    return InputError(
        where,
        given,
        Text(expected, expected),
        Text("correct it and send it again", "请更正后重新提交"),
    )


def refuse_code(check: Check) -> str:
    """Why a check cannot count, whatever it says; empty where nothing speaks against it."""
    try:
        tree = ast.parse(check.code)
    except (SyntaxError, ValueError, RecursionError) as error:
        return f"code that does not parse: {error}"
    if not any(
        isinstance(node, ast.FunctionDef) and node.name.startswith(_TESTS) for node in tree.body
    ):
        return "no function whose name begins with test or check"
    imported = {name for name, _ in _imports(tree)}
    for name, module in _imports(tree):
        if _CLOSED_MODULES & set(module.split(".")):
            return f"it imports {name}: a check calls the code, it does not read or replace it"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _CODE_ATTRIBUTES:
            return f"it reads .{node.attr}: a check calls the code, it does not read it"
        if isinstance(node, ast.Name | ast.arg):
            name = node.id if isinstance(node, ast.Name) else node.arg
            if name in _PATCHING:
                return f"it uses {name}: a check must not replace parts of the project"
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            root = _first_name(node)
            if root in imported:
                return f"it assigns to {ast.unparse(node)}: a check must not replace parts of the project"
    return ""


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that imports bind, each with what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                yield item.asname or item.name.partition(".")[0], item.name
        elif isinstance(node, ast.ImportFrom):
            for item in node.names:
                yield item.asname or item.name, f"{node.module or ''}.{item.name}"


def _first_name(node: ast.Attribute) -> str:
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return inner.id if isinstance(inner, ast.Name) else ""
