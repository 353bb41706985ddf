"""One statement of an architecture's source at a time is put into low precision or an unstable form.

Every form gives the statement's own value in exact arithmetic, and stands on the statement's own lines: whoever
names another line is wrong.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from benchmarks.precision.architectures import Architecture

_LEAST_ELEMENTS = 16
"""A statement that makes fewer numbers (a scale, an epsilon) cannot be told from its neighbours."""
_LARGEST = 1e3
"""A value beyond is a mask: no form of it keeps its value in any precision. Nor of one that is all zeros."""


@dataclass(frozen=True)
class Form:
    """A form of a value `{v}` that loses precision in a format."""

    name: str
    low: torch.dtype
    template: str


FORMS = (
    Form(
        "cancelled",
        torch.bfloat16,
        "((_fv := {v}) + (_fs := _fv.detach().abs().amax() * 300)) - _fs",
    ),
    Form(
        "cancelled",
        torch.float16,
        "((_fv := {v}) + (_fs := _fv.detach().abs().amax() * 3000)) - _fs",
    ),
    Form(
        "summed in a loop",
        torch.bfloat16,
        "__import__('functools').reduce(lambda _a, _b: _a + _b, [({v}) / 1024] * 1024)",
    ),
    Form(
        "overflowing",
        torch.float16,
        "((_fv := {v}) * (_fs := float(2e5 / _fv.detach().abs().amax().double()))) / _fs",
    ),
    Form(
        "flushed",
        torch.float16,
        "((_fv := {v}) * (_fs := float(4e-8 / _fv.detach().abs().amax().double()))) / _fs",
    ),
    Form(
        "exponential and back",
        torch.float16,
        "((_fv := {v}) * (_fs := float(20 / _fv.detach().abs().amax().double()))).exp().log() / _fs",
    ),
    Form("stored in bfloat16", torch.float32, "(_fv := {v}).to(torch.bfloat16).to(_fv.dtype)"),
)


@dataclass(frozen=True)
class Site:
    """A statement that makes a floating tensor."""

    architecture: Architecture
    index: int
    lines: range

    def __str__(self) -> str:
        return f"{self.architecture.name}:{self.lines.start}"


def source_of(architecture: Architecture) -> tuple[ast.Module, list[ast.Assign]]:
    """The tree of the module and its assignments to one name inside of methods."""
    tree = ast.parse(inspect.getsource(architecture.module))
    found = [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and _is_method(function)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    return tree, list(dict.fromkeys(found))


def _is_method(function: ast.FunctionDef) -> bool:
    """Of a running model: no constructor, and no function that TorchScript may compile."""
    arguments = function.args.args
    return function.name != "__init__" and bool(arguments) and arguments[0].arg == "self"


def find_sites(architecture: Architecture, folder: Path) -> list[Site]:
    """Statements that make a floating tensor of some size in a training step, by running one."""
    _, assigned = source_of(architecture)
    seen: set[int] = set()
    unusable: set[int] = set()

    def probe(index: int, value: Any) -> Any:
        wide = isinstance(value, torch.Tensor) and value.is_floating_point()
        usable = wide and value.numel() >= _LEAST_ELEMENTS
        if usable:
            usable = bool(0 < value.detach().abs().amax() < _LARGEST)
        (seen if usable else unusable).add(index)
        return value

    text = rewrite(
        architecture, {index: f"__probe__({index}, {{v}})" for index in range(len(assigned))}
    )
    module = load(
        architecture, text, folder / f"{architecture.name}_probe.py", {"__probe__": probe}
    )
    model, batch = architecture.build(module, 0)
    model(**batch)
    return [
        Site(architecture, index, range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for index, node in enumerate(assigned)
        if index in seen - unusable
    ]


def rewrite(architecture: Architecture, templates: dict[int, str]) -> str:
    """The source with the values of some assignments replaced, every other line where it was."""
    lines = inspect.getsource(architecture.module).splitlines(keepends=True)
    _, assigned = source_of(architecture)
    for index, node in sorted(enumerate(assigned), key=lambda item: -item[1].lineno):
        template = templates.get(index)
        if template is None:
            continue
        before, after = template.split("{v}")
        value = node.value
        end, start = (value.end_lineno or 0) - 1, value.lineno - 1
        cut = _column(lines[end], value.end_col_offset or 0)
        lines[end] = f"{lines[end][:cut]}\x01{lines[end][cut:]}"
        cut = _column(lines[start], value.col_offset)
        lines[start] = f"{lines[start][:cut]}\x00{lines[start][cut:]}"
        for place in {start, end}:
            lines[place] = lines[place].replace("\x00", f"({before}(").replace("\x01", f"){after})")
    return "".join(lines)


def _column(line: str, offset: int) -> int:
    return len(line.encode()[:offset].decode())


def load(
    architecture: Architecture, text: str, path: Path, extra: dict[str, Any] | None = None
) -> ModuleType:
    """A module of that source, in a file of its own, beside the one of transformers."""
    path.write_text(text)
    original = architecture.module
    spec = importlib.util.spec_from_file_location(f"{original.__package__}.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(extra or {})
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def draw_faults(
    architecture: Architecture, folder: Path, count: int, seed: int
) -> Iterator[tuple[Site, Form]]:
    """Statements and forms, the forms in turn."""
    sites = find_sites(architecture, folder)
    chance = random.Random(f"{architecture.name} {seed}")
    forms = list(FORMS)
    chance.shuffle(forms)
    for place in range(count):
        yield chance.choice(sites), forms[place % len(forms)]
