"""Which places can run in one pass: conditions around a place, and conditions that contradict."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from torchstone.core.pattern import pattern
from torchstone.sources.scene import FUNCTIONS, LOOPS, Scene

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_VERSION = pattern(
    r"__version__|version_info|TORCH_?(?:MAJOR|MINOR|VERSION)|torch_?version|hasattr\(\s*torch"
    r"|is_torch_|sys\.modules|(?:LooseVersion|parse_version|version\.parse)\(|_available\(",
    re.I,
)
_WITHOUT_DEVICE = pattern(r"cuda\.is_available|use_cuda|use_gpu|\bcpu\b|no_cuda|\bcuda\b", re.I)
_ENGINE = pattern(r"deepspeed|apex|colossal|zero_stage|fairscale|megatron", re.I)
_SCALER = pattern(r"scaler", re.I)


class Atom(NamedTuple):
    """A condition in its plainest form, and whether it holds."""

    text: str
    holds: bool


def conditions(scene: Scene, node: ast.AST) -> frozenset[Atom]:
    """What must hold, as far as branches and early exits of its function tell, for a node to run."""
    known: dict[ast.AST, frozenset[Atom]] = scene.cache.setdefault("conditions", {})
    statement = scene.statement(node) or node
    if statement not in known:
        found: set[Atom] = set()
        child: ast.AST = statement
        for up in scene.ancestors(statement):
            if isinstance(up, ast.If) and child is not up.test:
                _add(scene, up.test, child in up.body, found)
            _early(scene, up, child, found)
            if isinstance(up, (*FUNCTIONS, ast.Lambda)):
                break
            child = up
        known[statement] = frozenset(found | _narrowed(scene, statement, found))
    extra: set[Atom] = set()
    inner: ast.AST = node
    for up in scene.ancestors(node):
        if isinstance(up, ast.stmt):
            break
        if isinstance(up, ast.IfExp) and inner is not up.test:
            _add(scene, up.test, inner is up.body, extra)
        inner = up
    return known[statement] | extra


def _narrowed(scene: Scene, node: ast.AST, known: set[Atom]) -> set[Atom]:
    """What follows from an `if a and b` that did not hold where `a` does: b does not."""
    found: set[Atom] = set()
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, (*FUNCTIONS, ast.Lambda)):
            break
        failed = isinstance(up, ast.If) and child in up.orelse
        if failed and isinstance(up, ast.If) and isinstance(up.test, ast.BoolOp):
            if isinstance(up.test.op, ast.And):
                parts = [_atoms(scene, part) for part in up.test.values]
                left = [part for part in parts if not part <= known]
                if len(left) == 1 and len(left[0]) == 1:
                    (atom,) = left[0]
                    found.add(Atom(atom.text, not atom.holds))
        child = up
    return found


def _atoms(scene: Scene, test: ast.expr) -> frozenset[Atom]:
    found: set[Atom] = set()
    _add(scene, test, True, found)
    return frozenset(found)


def _early(scene: Scene, owner: ast.AST, child: ast.AST, found: set[Atom]) -> None:
    """`if test: return` before the place: there, the test did not hold; behind `assert test` it does."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(owner, name, None)
        if not isinstance(block, list) or child not in block:
            continue
        for statement in block[: block.index(child)]:
            if isinstance(statement, ast.If) and not statement.orelse:
                if isinstance(statement.body[-1], _LEAVES):
                    _add(scene, statement.test, False, found)
            elif isinstance(statement, ast.Assert):
                _add(scene, statement.test, True, found)


def _add(scene: Scene, test: ast.expr, holds: bool, found: set[Atom]) -> None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _add(scene, test.operand, not holds, found)
        return
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for part in test.values:  # all of `a and b` hold; none of `a or b` does
            _add(scene, part, holds, found)
        return
    found.add(_atom(scene, test, holds))


_OPPOSITE = {ast.IsNot: "is", ast.NotEq: "==", ast.NotIn: "in"}


def _atom(scene: Scene, test: ast.expr, holds: bool) -> Atom:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = scene.text(test.left), scene.text(test.comparators[0])
        op = test.ops[0]
        if isinstance(op, (ast.Is, ast.IsNot)) and right == "None":
            return Atom(_plain(left), holds is isinstance(op, ast.IsNot))
        if right == "0" and isinstance(op, (ast.Gt, ast.NotEq, ast.Eq)):
            return Atom(_plain(left), holds is not isinstance(op, ast.Eq))
        if type(op) in _OPPOSITE:
            return Atom(_plain(f"{left} {_OPPOSITE[type(op)]} {right}"), not holds)
        if isinstance(op, (ast.Is, ast.Eq, ast.In)):
            sign = {ast.Is: "is", ast.Eq: "==", ast.In: "in"}[type(op)]
            return Atom(_plain(f"{left} {sign} {right}"), holds)
    return Atom(_plain(scene.text(test)), holds)


def _plain(text: str) -> str:
    return " ".join(text.split())


def contradict(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    """Whether two places of one function run under conditions that cannot both hold.

    A condition on something that the function changes in between proves nothing; only what is
    never bound again counts.
    """
    first = conditions(scene, one)
    if not first:
        return False
    second = conditions(scene, other)
    return any(
        Atom(atom.text, not atom.holds) in second and _is_fixed(scene, atom.text, one)
        for atom in first
    )


def _is_fixed(scene: Scene, text: str, node: ast.AST) -> bool:
    """Whether no loop around the node binds a name of a condition anew, and no call makes it."""
    if "(" in text and not text.startswith(("isinstance(", "hasattr(", "torch.cuda.is_available(")):
        return False
    names = set(re.findall(r"[A-Za-z_][\w.]*", text))
    scope = scene.scope(node)
    bound: dict[ast.AST, dict[str, int]] = scene.cache.setdefault("bound in scope", {})
    if scope not in bound:
        bound[scope] = _stores(scene, scope)
    return all(bound[scope].get(name, 0) <= 1 for name in names)


def _stores(scene: Scene, scope: ast.AST) -> dict[str, int]:
    """How often a scope binds each name or chain; what a loop binds counts twice."""
    found: dict[str, int] = {}
    for node in scene.inside(scope):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            name = scene.dotted(node)
            looped = any(isinstance(up, LOOPS) for up in scene.ancestors(node))
            found[name] = found.get(name, 0) + (2 if looped else 1)
    return found


def special_cases(scene: Scene, node: ast.AST) -> frozenset[str]:
    """Why a place may not be where the usual run comes by: `version`, `fallback`, `engine`,
    `no-scaler`, `no-device`."""
    found: set[str] = set()
    child: ast.AST = node
    for up in scene.ancestors(node):
        if isinstance(up, ast.ExceptHandler):
            found.add("fallback")
        if isinstance(up, ast.Try) and child in up.body and _imports(up):
            found.add("version")
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            found |= _case(scene.text(up.test))
        child = up
    for atom in conditions(scene, node):
        if _SCALER.search(atom.text) and not atom.holds:
            found.add("no-scaler")
        if _WITHOUT_DEVICE.search(atom.text) and atom.holds is ("cpu" in atom.text.lower()):
            found.add("no-device")
    return frozenset(found)


def _case(test: str) -> set[str]:
    found: set[str] = set()
    if _VERSION.search(test):
        found.add("version")
    if _ENGINE.search(test):
        found.add("engine")
    return found


def _imports(statement: ast.Try) -> bool:
    """Whether a `try` has a handler for what an older or newer version lacks."""
    return any(
        isinstance(name, ast.Name) and name.id in ("ImportError", "AttributeError", "TypeError")
        for handler in statement.handlers
        for name in (handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type])
    )
