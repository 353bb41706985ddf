"""A mean over batches becomes the mean over samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import Function, SourceFile, called, fix
from torchstone.conductor.repairs._trees import Loop, as_operand, nodes_of, samples_in
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit, Fix

RULES = ("EX107",)
_COUNT = "counted"
"""Name of the new counter."""


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    function = file.function(finding.line)
    if function is None:
        return
    for loop in [node for node in nodes_of(function) if isinstance(node, ast.For)]:
        sums = [
            node
            for node in nodes_of(loop)
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
        ]
        yield from _by_parts(file, function, loop, sums)
        yield from _by_samples(file, function, loop, sums)
        yield from _of_lists(file, function, loop)


def _by_parts(
    file: SourceFile, function: Function, loop: Loop, sums: list[ast.AugAssign]
) -> Iterator[Fix]:
    """`total += error / count` with `total / batches`: both are added up, and divided at the end."""
    for item in sums:
        ratio = _ratio(item.value)
        ends = _divisions(file, function, item)
        if ratio is None or not ends:
            continue
        below = file.source(ratio.right)
        changes = [
            file.replace(ratio, as_operand(file, ratio.left)),
            file.insert_after(item, f"{_COUNT} += float({below})"),
            file.insert_before(loop.lineno, f"{_COUNT} = 0.0"),
            *(file.replace(end.right, _COUNT) for end in ends),
        ]
        yield fix(
            changes,
            "add up the sums and the counts, and divide once",
            "分别累加总和与计数，最后只除一次",
        )


def _by_samples(
    file: SourceFile, function: Function, loop: Loop, sums: list[ast.AugAssign]
) -> Iterator[Fix]:
    """`total += mean` with `total / batches`: each mean counts as often as its batch has samples."""
    samples = samples_in(file, loop)
    if not samples:
        return
    changes: list[Edit] = []
    for item in sums:
        ends = _divisions(file, function, item)
        if not ends or (isinstance(item.value, ast.Constant) and item.value.value == 1):
            continue
        changes += [
            file.replace(item.value, f"{as_operand(file, item.value)} * {samples}"),
            *(file.replace(end.right, _COUNT) for end in ends),
        ]
    if changes:
        changes = [
            *dict.fromkeys(changes),
            file.insert_after(loop.body[-1], f"{_COUNT} += {samples}"),
            file.insert_before(loop.lineno, f"{_COUNT} = 0"),
        ]
        yield fix(changes, "weigh each batch by its samples", "按样本数对每个批次加权")


def _of_lists(file: SourceFile, function: Function, loop: Loop) -> Iterator[Fix]:
    """`means.append(mean)` with the mean of the list at the end."""
    samples = samples_in(file, loop)
    for node in nodes_of(loop):
        if not (isinstance(node, ast.Call) and called(node) == "append" and len(node.args) == 1):
            continue
        if not isinstance(node.func, ast.Attribute) or not samples:
            continue
        name = file.source(node.func.value)
        ends = [item for item in nodes_of(function) if _is_mean_of(file, item, name)]
        if ends:
            changes = [
                file.replace(node.args[0], f"{as_operand(file, node.args[0])} * {samples}"),
                file.insert_after(loop.body[-1], f"{_COUNT} += {samples}"),
                file.insert_before(loop.lineno, f"{_COUNT} = 0"),
            ]
            changes += [
                file.replace(end, f"(sum({name}) / {_COUNT})")
                for end in ends
                if isinstance(end, ast.expr)
            ]
            yield fix(changes, "weigh each batch by its samples", "按样本数对每个批次加权")


def _ratio(node: ast.expr) -> ast.BinOp | None:
    """The division in `a / b`, `(a / b).item()`, `float(a / b)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return node
    if isinstance(node, ast.Call):
        inner = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
        inner = inner or (node.args[0] if len(node.args) == 1 else None)
        return _ratio(inner) if inner is not None else None
    return None


def _divisions(file: SourceFile, function: Function, item: ast.AugAssign) -> list[ast.BinOp]:
    """Divisions of a sum by how many batches there were: behind the loop, or by its counter."""
    name = file.source(item.target)
    return [
        node
        for node in nodes_of(function)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and file.source(node.left) == name
        and node.lineno > item.lineno
        and _counts_batches(file, function, node.right)
    ]


def _counts_batches(file: SourceFile, function: Function, node: ast.expr) -> bool:
    """`len(loader)`, `max(len(loader), 1)`, a name that grows by one, or `i + 1` of an enumerate."""
    text = file.source(node)
    if "len(" in text and "dataset" not in text:
        return True
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    for part in nodes_of(function):
        if isinstance(part, ast.AugAssign) and file.source(part.target) in names:
            return isinstance(part.value, ast.Constant) and part.value.value == 1
        if isinstance(part, ast.For) and isinstance(part.iter, ast.Call):
            first = part.target.elts[0] if isinstance(part.target, ast.Tuple) else None
            if called(part.iter) == "enumerate" and isinstance(first, ast.Name):
                if first.id in names:
                    return True
    return False


def _is_mean_of(file: SourceFile, node: ast.AST, name: str) -> bool:
    """`mean(means)`, `sum(means) / len(means)`, `torch.stack(means).mean()`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return file.source(node) == f"sum({name}) / len({name})"
    if not isinstance(node, ast.Call) or called(node) not in ("mean", "fmean", "average"):
        return False
    parts = {
        file.source(item) for item in ast.walk(node) if isinstance(item, ast.Name | ast.Attribute)
    }
    return name in parts
