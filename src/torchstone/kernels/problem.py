"""A problem in the KernelBench form: `Model`, `get_inputs` and `get_init_inputs` in one file.

Reading a problem never executes it; the Verifier runs it in a process of its own.
"""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchstone.core.errors import InputError, system_said
from torchstone.core.files import read_regular
from torchstone.core.text import NOTHING, Text

Framework = Literal["torch", "numpy", "mindspore"]
SOURCE_LIMIT_BYTES = 1 << 20
_SHIPPED = Path(__file__).parent / "problems"
PARTS = ("Model", "get_inputs", "get_init_inputs")
"""What a file defines to be a problem."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a kernel has to compute, as source, and the framework that it is written in."""

    name: str
    source: str
    framework: Framework


def shipped_problems() -> tuple[str, ...]:
    """The names of the problems that come with the package, in order."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("[!_]*.py")))


def load_problem(spec: str) -> Problem:
    """The problem at a path that ends in `.py`, or the shipped problem of this name."""
    path = Path(spec) if spec.endswith(".py") else _SHIPPED / f"{spec}.py"
    if not spec.endswith(".py") and spec not in shipped_problems():
        names = ", ".join(shipped_problems())
        near = difflib.get_close_matches(spec, shipped_problems(), n=1)
        meant = Text(f"did you mean {near[0]}? ", f"您是否想用 {near[0]}？") if near else NOTHING
        raise InputError(
            "kernel: problem", repr(spec),
            Text("the path of a .py file, or the name of a shipped problem", ".py 文件路径，或内置问题的名称"),
            Text(f"{meant.en}choose one of: {names}", f"{meant.zh}可选：{names}"),
        )  # fmt: skip
    return problem_from_source(read_source(path), path.stem)


def problem_from_source(source: str, name: str) -> Problem:
    """A problem whose parts are all there, found by parsing only."""
    tree = parse(source, f"problem {name}")
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    missing = [name for name in PARTS if name not in defined]
    if missing:
        raise InputError(
            f"problem {name}",
            Text(f"no {', '.join(missing)}", f"缺少 {'、'.join(missing)}"),
            Text(
                "a file that defines Model, get_inputs and get_init_inputs",
                "定义了 Model、get_inputs 和 get_init_inputs 的文件",
            ),
            Text(
                "add what is missing; see docs/kernel.md", "请补上缺少的部分；参见 docs/kernel.md"
            ),
        )
    return Problem(name, source, _framework(tree))


def _framework(tree: ast.Module) -> Framework:
    """What the file imports decides: mindspore, else torch, else numpy."""
    roots: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {item.name.partition(".")[0] for item in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            roots.add(node.module.partition(".")[0])
    if "mindspore" in roots:
        return "mindspore"
    return "torch" if "torch" in roots else "numpy"


def read_source(path: Path) -> str:
    """The text of a source file; an InputError says what is the matter with it."""
    try:
        return read_regular(path, SOURCE_LIMIT_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        utf8 = Text("not UTF-8", "不是 UTF-8")
        reason = system_said(error) if isinstance(error, OSError) else utf8
        raise InputError(
            str(path),
            reason,
            Text("a readable Python file", "可读取的 Python 文件"),
            Text("give the path of a .py file that exists", "请给出一个存在的 .py 文件路径"),
        ) from None


def parse(source: str, where: str) -> ast.Module:
    """The syntax tree of a source; an InputError for what is no Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise InputError(
            where + line,
            str(error.args[0] if error.args else type(error).__name__)[:200],
            Text("Python source", "Python 源码"),
            Text("fix the syntax", "请修正语法"),
        ) from None
