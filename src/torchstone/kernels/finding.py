"""Finding the problem of a candidate: in its own file, or in a file beside it."""

from __future__ import annotations

import ast
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.kernels.problem import PARTS, Problem, parse, problem_from_source, read_source
from torchstone.kernels.script import without_candidate

_BESIDE = (
    "{stem}_problem.py",
    "{stem}_reference.py",
    "{stem}_ref.py",
    "problem.py",
    "reference.py",
)
_ENDINGS = ("_new", "_triton", "_numba", "_c", "_torch", "_numpy", "_kernel", "_candidate")
"""What a candidate's file is often called after its problem's."""


def problem_beside(path: Path, function: str = "") -> Problem:
    """The problem that a file holds beside `ModelNew` or a function, or that lies beside it; an InputError says where it
    was looked for."""
    source = read_source(path)
    if _is_problem(source, path.stem):
        source = without_candidate(source, function or "ModelNew", PARTS)
        return problem_from_source(source, path.stem)
    tried = [path.with_name(name.format(stem=path.stem)) for name in _BESIDE]
    tried += [path.with_name(f"{path.stem.removesuffix(end)}.py") for end in _ENDINGS
              if path.stem.endswith(end)]  # fmt: skip
    for other in tried:
        if other.is_file() and _is_problem(text := read_source(other), other.stem):
            return problem_from_source(text, other.stem)
    names = ", ".join(other.name for other in tried)
    raise InputError(
        f"kernel verify {path}",
        Text("a candidate without a problem", "没有问题的候选"),
        Text(f"Model, get_inputs and get_init_inputs in the same file or beside it ({names})",
             f"同一文件中或旁边的文件（{names}）中的 Model、get_inputs 和 get_init_inputs"),
        Text("name the problem first: torchstone kernel verify PROBLEM CANDIDATE",
             "请先写出问题：torchstone kernel verify 问题 候选"),
    )  # fmt: skip


def _is_problem(source: str, name: str) -> bool:
    defined = {
        node.name
        for node in parse(source, name).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    return defined.issuperset(PARTS)
