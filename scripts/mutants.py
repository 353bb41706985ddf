"""Random mutants of a package, and which of them its own tests kill: `mutants.py sources --count 40`.

Each mutant changes one place of one file in a copy of the source (a comparison, a condition, a
number, an operator, a returned value, a statement left out) and runs `tests/<package>` against it.
A mutant is killed when a test fails or the run takes ten times as long as the unchanged one.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COMPARISONS = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.Mod: ast.Mult,
}  # fmt: skip


class Site(NamedTuple):
    """One change that can be made to a tree."""

    line: int
    what: str
    apply: Callable[[], None]


def sites(tree: ast.Module) -> Iterator[Site]:
    """Every change that can be made; docstrings, annotations and messages of errors are left out."""
    for node in inside(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            other = COMPARISONS[type(node.ops[0])]
            yield Site(line, f"{type(node.ops[0]).__name__} -> {other.__name__}",
                       lambda n=node, o=other: n.ops.__setitem__(0, o()))  # fmt: skip
        elif isinstance(node, ast.BoolOp):
            other = ast.And if isinstance(node.op, ast.Or) else ast.Or
            yield Site(line, f"-> {other.__name__}", lambda n=node, o=other: setattr(n, "op", o()))
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not is_text(node):
            other = OPERATORS[type(node.op)]
            yield Site(line, f"{type(node.op).__name__} -> {other.__name__}",
                       lambda n=node, o=other: setattr(n, "op", o()))  # fmt: skip
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield Site(line, "not x -> x", lambda n=node: setattr(n, "op", ast.UAdd()) or doubt(n))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
            value = not node.value if isinstance(node.value, bool) else node.value + 1
            yield Site(line, f"{node.value} -> {value}",
                       lambda n=node, v=value: setattr(n, "value", v))  # fmt: skip
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield Site(line, "condition negated", lambda n=node: setattr(
                n, "test", ast.UnaryOp(ast.Not(), n.test)))  # fmt: skip
        elif isinstance(node, ast.Return) and node.value is not None and not is_none(node.value):
            yield Site(line, "returns None",
                       lambda n=node: setattr(n, "value", ast.Constant(None)))  # fmt: skip
        elif isinstance(node, (ast.Expr, ast.AugAssign, ast.Break, ast.Continue)):
            yield Site(line, "left out", lambda n=node: leave_out(n))


def inside(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "keywords_of_class"):
                continue
            children = value if isinstance(value, list) else [value]
            waiting += [child for child in children if isinstance(child, ast.AST)]


def is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, (str, bytes)))
        for part in ast.walk(node)
    )


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def doubt(node: ast.UnaryOp) -> None:
    """`not x` becomes `bool(x)`."""
    node.op = ast.Not()
    node.operand = ast.UnaryOp(ast.Not(), node.operand)


def leave_out(node: ast.AST) -> None:
    """`pass` in the place of a statement."""
    node.__class__ = ast.Pass  # type: ignore[assignment]
    for name in ("value", "target", "op"):
        node.__dict__.pop(name, None)


class Mutant(NamedTuple):
    """A changed file."""

    path: Path
    line: int
    what: str
    text: str


def choose(package: str, count: int, seed: int) -> list[Mutant]:
    """Mutants at random places; each place is as likely as another."""
    files = sorted((ROOT / "src" / "torchstone" / package).rglob("*.py"))
    places = [
        (path, index)
        for path in files
        for index, _ in enumerate(sites(ast.parse(path.read_text("utf-8"))))
    ]
    found = []
    for path, index in random.Random(seed).sample(places, count):
        tree = ast.parse(path.read_text("utf-8"))
        site = list(sites(tree))[index]
        site.apply()
        text = ast.unparse(ast.fix_missing_locations(tree))
        found.append(Mutant(path.relative_to(ROOT / "src"), site.line, site.what, text))
    return found


def run(package: str, mutant: Mutant | None, limit: float) -> tuple[bool, float]:
    """Whether the package's tests pass on a copy of the source, and how long they took."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            (source / mutant.path).write_text(mutant.text, "utf-8")
        start = time.monotonic()
        words = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider")
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *words, str(ROOT / "tests" / package)],
                cwd=ROOT, capture_output=True, timeout=limit,
                env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, limit
        return done.returncode == 0, time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    passed, seconds = run(asked.package, None, 600)
    if not passed:
        raise SystemExit("the tests fail without a change")
    mutants = choose(asked.package, asked.count, asked.seed)
    with ThreadPoolExecutor(asked.jobs) as pool:
        results = pool.map(lambda item: run(asked.package, item, 10 * seconds + 10)[0], mutants)
        survivors = 0
        for mutant, survived in zip(mutants, results, strict=True):
            survivors += survived
            if survived:
                print(f"survives: {mutant.path}:{mutant.line}: {mutant.what}", flush=True)
    print(f"{asked.package}: {asked.count - survivors} of {asked.count} killed (seed {asked.seed})")


if __name__ == "__main__":
    main()
