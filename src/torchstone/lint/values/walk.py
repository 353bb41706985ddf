"""The statements of a function, path by path; each is walked a bounded number of times."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchstone.lint.values.evaluation import Evaluation, element_of
from torchstone.lint.values.state import State, merged
from torchstone.lint.values.value import NONE, UNKNOWN, Value, joined
from torchstone.sources.regions import Region

if TYPE_CHECKING:
    from torchstone.lint.values.analysis import Analysis

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Walk:
    """One way through the body of a function or module."""

    def __init__(self, analysis: Analysis, function: ast.AST, names: dict[str, Value]) -> None:
        self.analysis = analysis
        self.function = function
        self.state = State(names)
        self.returned: list[Value] = []
        self._again = True
        """Whether loops are walked twice, so that what one round leaves reaches the next."""

    def run(self, body: Sequence[ast.stmt], region: Region) -> Value:
        self._block(body, region)
        if self.state.live:
            self.returned.append(NONE)
        return joined(*self.returned) if self.returned else UNKNOWN

    def _block(self, body: Sequence[ast.stmt], region: Region) -> None:
        evaluation = Evaluation(self.analysis, self.function, self.state, region)
        for statement in body:
            evaluation.state = self.state
            self._statement(statement, evaluation)
            if not self.state.live:
                return

    def _statement(self, node: ast.stmt, at: Evaluation) -> None:
        if isinstance(node, ast.Assign):
            value = at.value(node.value)
            for target in node.targets:
                at.store(target, value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                at.store(node.target, at.value(node.value))
        elif isinstance(node, ast.AugAssign):
            at.store(node.target, at.value(_as_operation(node)))
        elif isinstance(node, ast.Expr):
            at.value(node.value)
        elif isinstance(node, ast.Return):
            self.returned.append(at.value(node.value) if node.value is not None else NONE)
            self.state.live = False
        elif isinstance(node, _LEAVES):
            self.state.live = False
        else:
            self._compound(node, at)

    def _compound(self, node: ast.stmt, at: Evaluation) -> None:
        region = at.region
        if isinstance(node, ast.If):
            at.value(node.test)
            self._branches((node.body, node.orelse), region)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            rows = at.value(node.iter)
            self._loop(node, region, (node.target, element_of(rows)))
        elif isinstance(node, ast.While):
            at.value(node.test)
            self._loop(node, region, None)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                value = at.value(item.context_expr)
                if item.optional_vars is not None:
                    at.store(item.optional_vars, value)
            self._block(node.body, self.analysis.region_inside(node))
        elif isinstance(node, ast.Try):
            self._try(node, region)
        elif isinstance(node, ast.Match):
            at.value(node.subject)
            self._branches([*(case.body for case in node.cases), []], region)
        elif isinstance(node, (ast.Assert, ast.Delete)):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr) and not isinstance(node, ast.Delete):
                    at.value(part)

    def _branches(self, arms: Sequence[Sequence[ast.stmt]], region: Region) -> None:
        before = self.state
        ends: list[State] = []
        for arm in arms:
            self.state = before.copy()
            self._block(arm, region)
            ends.append(self.state)
        self.state = merged(ends, before)

    def _loop(
        self,
        node: ast.For | ast.AsyncFor | ast.While,
        region: Region,
        bound: tuple[ast.expr, Value] | None,
    ) -> None:
        before, again = self.state.copy(), self._again
        for last in (False, True) if again else (True,):
            self._again = again and last  # inner loops go round twice in the last round only
            round_ = self.state.copy()
            if bound is not None:
                Evaluation(self.analysis, self.function, self.state, region).store(*bound)
            self._block(node.body, region)
            self.state.live = True  # `continue` and `break` end a round, not the function
            self.state = merged((self.state, round_), before)
        self._again = again
        self._block(node.orelse, region)

    def _try(self, node: ast.Try, region: Region) -> None:
        before = self.state.copy()
        self._block(node.body, region)
        if self.state.live:
            self._block(node.orelse, region)
        ends = [self.state]
        for handler in node.handlers:
            self.state = merged((ends[0].copy(), before.copy()), before)
            self.state.live = True
            self._block(handler.body, region)
            ends.append(self.state)
        self.state = merged(ends, before)
        live, self.state.live = self.state.live, True
        self._block(node.finalbody, region)
        self.state.live = self.state.live and live


def _as_operation(node: ast.AugAssign) -> ast.expr:
    """`x += y` as the operation it is; the same node each time, so that facts stay with it."""
    kept: ast.expr | None = getattr(node, "as_operation", None)
    if kept is None:
        left = ast.copy_location(_loaded(node.target), node.target)
        kept = ast.copy_location(ast.BinOp(left, node.op, node.value), node)
        node.as_operation = kept  # type: ignore[attr-defined]
    return kept


def _loaded(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())
