"""Which loops run a training step each time round."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterable

from torchstone.sources.parsed_file import FUNCTIONS, LOOPS, ParsedFile
from torchstone.sources.values import is_optimizer


class Calls(tuple[ast.Call, ...]):
    """Calls of one file in order: membership and "those inside a block" cost no walk over all."""

    _members: frozenset[ast.Call]

    def __new__(cls, calls: Iterable[ast.Call]) -> Calls:
        found = super().__new__(cls, sorted(calls, key=_position))
        found._members = frozenset(found)
        return found

    def __contains__(self, call: object) -> bool:
        return call in self._members

    def inside(self, scene: ParsedFile, outer: ast.AST) -> list[ast.Call]:
        """Those that stand below a node."""
        end = getattr(outer, "end_lineno", None)
        if end is None:
            return list(self)
        first = bisect_left(self, (outer.lineno, -1), key=_position)  # type: ignore[attr-defined]
        last = bisect_left(self, (end + 1, -1), key=_position)
        return [call for call in self[first:last] if scene.within(call, outer)]

    def of(self, scene: ParsedFile, function: ast.AST | None) -> list[ast.Call]:
        """Those whose innermost function is this one; those of no function for None."""
        rows = self.inside(scene, function) if function is not None else list(self)
        return [call for call in rows if scene.function(call) is function]


def _position(call: ast.Call) -> tuple[int, int]:
    return call.lineno, call.col_offset


def backward_calls(scene: ParsedFile) -> Calls:
    """`loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`."""
    found: Calls | None = scene.cache.get("backward")
    if found is None:
        rows = scene.calls.get("backward", ())
        found = scene.cache["backward"] = Calls(c for c in rows if _is_backward(scene, c))
    return found


def _is_backward(scene: ParsedFile, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    if scene.dotted(call.func.value) in ("ctx", "super", "self"):
        return False  # an autograd.Function's own
    function = scene.function(call)
    return function is None or function.name not in ("backward",)


def step_calls(scene: ParsedFile) -> Calls:
    """`optimizer.step()` and `scaler.step(optimizer)`."""
    found: Calls | None = scene.cache.get("step")
    if found is None:
        found = scene.cache["step"] = Calls(
            call
            for call in scene.calls.get("step", ())
            if isinstance(call.func, ast.Attribute)
            and (
                is_optimizer(scene, call.func.value)
                or (len(call.args) == 1 and is_optimizer(scene, call.args[0]))
            )
        )
    return found


def step_loops(scene: ParsedFile) -> dict[ast.AST, ast.Call]:
    """Loops that are the innermost around a backward or optimizer step, with that call.

    Where no loop is around it, the function itself stands for one if it does both: a step
    function, called once a step.
    """
    found: dict[ast.AST, ast.Call] | None = scene.cache.get("step_loops")
    if found is not None:
        return found
    found = {}
    backward, steps = backward_calls(scene), step_calls(scene)
    for call in (*backward, *steps):
        loop = _innermost_loop(scene, call)
        if loop is not None:
            found.setdefault(loop, call)
    for call in backward:
        function = scene.function(call)
        if function is not None and _innermost_loop(scene, call) is None:
            if steps.of(scene, function):
                found.setdefault(function, call)
    scene.cache["step_loops"] = found
    return found


def _innermost_loop(scene: ParsedFile, node: ast.AST) -> ast.AST | None:
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, LOOPS) and child in up.body:
            return up
        if isinstance(up, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            return None
        child = up
    return None


def step_loop(scene: ParsedFile, node: ast.AST) -> ast.AST | None:
    """The step loop or step function whose body a node is part of."""
    loops = step_loops(scene)
    if not loops:
        return None
    child = node
    for up in scene.ancestors(node):
        if up in loops and child in up.body:  # type: ignore[attr-defined]
            return up
        if isinstance(up, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            return None
        child = up
    return None


def gated(scene: ParsedFile, node: ast.AST, loop: ast.AST) -> bool:
    """Whether the node runs only now and then: under `if step % n`, a counter's limit, a flag that
    asks for logging, in an exception handler, or on the way out (`break`, `raise`)."""
    child = node
    for up in scene.ancestors(node):
        if up is loop:
            return False
        if isinstance(up, ast.ExceptHandler):
            return True
        if isinstance(up, ast.If) and child is not up.test:
            if _seldom(scene, up.test) or _leaves(up.body if child in up.body else up.orelse):
                return True
        if isinstance(up, ast.IfExp) and child is not up.test and _seldom(scene, up.test):
            return True
        child = up
    return False


_SELDOM_WORDS = ("log", "eval", "save", "print", "debug", "verbose", "last", "every", "interval",
                 "should", "valid", "profile", "master", "rank", "main", "sync", "nan", "first",
                 "display", "report", "freq", "checkpoint")  # fmt: skip


def _seldom(scene: ParsedFile, test: ast.expr) -> bool:
    for part in scene.inside(test):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
            return True
        name = scene.last_name(part).lower()
        if name and any(word in name for word in _SELDOM_WORDS):
            return True
    return False


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], (ast.Break, ast.Raise, ast.Return))
