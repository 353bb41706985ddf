"""A schedule counts the steps that it is called in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchstone.conductor.probes.templates import Function, SourceFile, called, fix
from torchstone.conductor.repairs._trees import (
    as_operand,
    loops_around,
    nodes_of,
    owner_of,
    remove,
    scope_at,
    statements_that_call,
)
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX110", "EX115", "EX120")
_SCHEDULER = re.compile(r"LR$|[Ss]chedule")
_LENGTHS = (
    "T_max",
    "total_steps",
    "num_training_steps",
    "total_iters",
    "max_iters",
    "step_size",
    "num_steps",
)


@dataclass(frozen=True, slots=True)
class Made:
    """Where a schedule is made."""

    scope: Function | ast.Module
    statement: ast.Assign
    call: ast.Call
    name: str


@dataclass(frozen=True, slots=True)
class Called:
    """Where it is stepped."""

    scope: Function | ast.Module
    statement: ast.Expr


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    made = list(_made(file))
    at_line = [
        item
        for item in made
        if item.statement.lineno <= finding.line <= (item.statement.end_lineno or 0)
    ]
    for schedule in at_line or made:
        calls = list(_calls(file, schedule))
        if finding.rule == "EX115":
            yield from _begin_to_step(file, schedule)
            continue
        said = dict(finding.what.args)
        is_long = int(said.get("end", 0)) > int(said.get("made", 1))
        for call in calls:
            yield from _scale(file, schedule, call, is_long)
            if not is_long:
                yield from _step_later(file, schedule, call)


def _made(file: SourceFile) -> Iterator[Made]:
    for node in ast.walk(file.tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if _SCHEDULER.search(called(node.value)) and len(node.targets) == 1:
            yield Made(scope_at(file, node.lineno), node, node.value, file.source(node.targets[0]))


def _calls(file: SourceFile, schedule: Made) -> Iterator[Called]:
    """Statements `scheduler.step()`, under its own name or that of an argument."""
    last = schedule.name.rpartition(".")[2]
    functions = [node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef)]
    scopes: list[Function | ast.Module] = [file.tree, *functions]
    for scope in scopes:
        for statement, call in statements_that_call(scope, "step"):
            owner = owner_of(file, call).rpartition(".")[2]
            if owner == last or _SCHEDULER.search(owner) or owner.startswith("sched"):
                yield Called(scope, statement)


def _scale(file: SourceFile, schedule: Made, call: Called, is_long: bool) -> Iterator[Fix]:
    """The length that it is made with, in the steps that are made."""
    length = _length_of(schedule.call)
    if length is None:
        return
    text = as_operand(file, length)
    factors = [*(_group_sizes(file, call) if is_long else ()), *_rounds(file, schedule, call)]
    sign = "//" if is_long else "*"
    for factor in dict.fromkeys(factors):
        yield fix(
            [file.replace(length, f"{text} {sign} {factor}")],
            "give the schedule the number of times that its step() is called",
            "将 step() 的实际调用次数传给调度器",
        )


def _length_of(call: ast.Call) -> ast.expr | None:
    named = next((item.value for item in call.keywords if item.arg in _LENGTHS), None)
    return named or (call.args[1] if len(call.args) > 1 else None)


def _group_sizes(file: SourceFile, call: Called) -> Iterator[str]:
    """K of `if (i + 1) % K == 0` around the call."""
    for node in nodes_of(call.scope):
        if isinstance(node, ast.If) and any(item is call.statement for item in ast.walk(node)):
            for part in ast.walk(node.test):
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                    yield file.source(part.right)


def _rounds(file: SourceFile, schedule: Made, call: Called) -> Iterator[str]:
    """How often the innermost loop around the call goes round, as code for where the schedule is made."""
    loops = loops_around(call.scope, call.statement)
    if not loops or not isinstance(loops[-1], ast.For):
        return
    over = loops[-1].iter
    if isinstance(over, ast.Call) and called(over) in ("enumerate", "tqdm", "iter") and over.args:
        over = over.args[0]
    name = file.source(over)
    if call.scope is schedule.scope:
        yield f"len({name})"
        return
    for node in nodes_of(schedule.scope):
        if isinstance(node, ast.Call) and called(node) == getattr(call.scope, "name", ""):
            given = _argument(file, call.scope, node, name)
            if given:
                yield f"len({given})"


def _argument(file: SourceFile, function: ast.AST, call: ast.Call, name: str) -> str:
    """What a call gives for one of the arguments of a function."""
    named = next((item.value for item in call.keywords if item.arg == name), None)
    if named is not None:
        return file.source(named)
    names = (
        [item.arg for item in function.args.args] if isinstance(function, ast.FunctionDef) else []
    )
    is_method = names[:1] == ["self"] and isinstance(call.func, ast.Attribute)
    names = names[1:] if is_method else names
    place = names.index(name) if name in names else len(call.args)
    if place < len(call.args):
        return file.source(call.args[place])
    return name if name.startswith("self.") else ""


def _step_later(file: SourceFile, schedule: Made, call: Called) -> Iterator[Fix]:
    """Once in a round of the outer loop."""
    loops = loops_around(call.scope, call.statement)
    text = file.source(call.statement)
    if len(loops) > 1:
        yield fix(
            [remove(file, call.scope, call.statement), file.insert_after(loops[-1], text)],
            "step the schedule once per epoch",
            "每个 epoch 只推进一次调度",
        )
    elif loops and call.scope is not schedule.scope:
        for node in nodes_of(schedule.scope):
            if (
                isinstance(node, ast.Expr | ast.Assign)
                and isinstance(node.value, ast.Call)
                and called(node.value) == getattr(call.scope, "name", "")
                and loops_around(schedule.scope, node)
            ):
                yield fix(
                    [
                        remove(file, call.scope, call.statement),
                        file.insert_after(node, f"{schedule.name}.step()"),
                    ],
                    "step the schedule once per epoch",
                    "每个 epoch 只推进一次调度",
                )


def _begin_to_step(file: SourceFile, schedule: Made) -> Iterator[Fix]:
    """After each optimizer step, or at the end of each round of the outer loop."""
    for statement, _ in statements_that_call(schedule.scope, "step"):
        loops = loops_around(schedule.scope, statement)
        if loops:
            outer = file.insert_after(loops[0].body[-1], f"{schedule.name}.step()")
            inner = file.insert_after(statement, f"{schedule.name}.step()")
            for edit in (outer, inner):
                yield fix([edit], "step the schedule", "推进调度")
            return
    for node in nodes_of(schedule.scope):  # the steps are made by another function
        if isinstance(node, ast.For) and node.lineno > schedule.statement.lineno:
            edit = file.insert_after(node.body[-1], f"{schedule.name}.step()")
            yield fix([edit], "step the schedule once per epoch", "每个 epoch 推进一次调度")
            return
