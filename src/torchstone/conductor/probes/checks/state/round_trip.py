"""A fresh model that loads the state dict of the trained one gives its outputs."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import cases
from torchstone.conductor.probes.replay.divergence import TOLERANCE, difference
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import NOWHERE, Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR213", "state-not-restored", Severity.MEDIUM, "wrong result",
    Text("a model that loads the state dict of the trained one gives other outputs", "加载训练后状态字典的新模型给出不同的输出"),
    Text("something that training has changed and outputs depend on is not in the state dict: a resumed or served model differs",
         "训练改变且影响输出的某个量不在状态字典中：恢复或部署的模型会不同"),
    Text("make it a persistent buffer or a parameter", "将其设为持久的 buffer 或参数"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    for case in cases(run, top=True):
        fresh = run.fresh.get(id(case.call.module))
        if fresh is None:
            continue
        run.asks(RULE)
        other = copy.deepcopy(fresh).float().eval()
        other.load_state_dict(case.module.state_dict())
        before, after = case.run(), replace(case, module=other).run()
        size = max((difference(a, b) for a, b in zip(before, after, strict=False)), default=0.0)
        if size <= TOLERANCE:
            continue
        for module, name in _lost(case.module, other):
            place = _made_at(run, type(module), name)
            if place:
                yield Shown(
                    RULE, place,
                    Text("self.{name} of {kind} is not in the state dict: without it outputs differ by {size}",
                         "{kind} 的 self.{name} 不在状态字典中：缺少它时输出相差 {size}"),
                    {"name": name, "kind": type(module).__name__, "size": f"{size:.1%}"},
                    (number("difference", "差异", 100 * size, "%", ON_A_COPY),
                     expected(0.0, "%", ON_A_COPY)),
                    offered(run.root, place, _persistent),
                )  # fmt: skip
                return


def _lost(trained: nn.Module, restored: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """Tensors that the state dict does not carry, and that differ; the larger difference first."""
    found: list[tuple[float, nn.Module, str]] = []
    pairs = zip(trained.modules(), restored.modules(), strict=False)
    for one, other in pairs:
        values = {**one.__dict__, **one._buffers}
        for name, value in values.items():
            twin = getattr(other, name, None)
            if isinstance(value, torch.Tensor) and isinstance(twin, torch.Tensor):
                size = difference(value.float(), twin.float())
                if size > TOLERANCE and f"{name}" not in one.state_dict():
                    found.append((_is_read(one, name), one, name))
    for _, module, name in sorted(found, key=lambda item: -item[0]):
        yield module, name


def _is_read(module: nn.Module, name: str) -> float:
    """Whether forward itself reads it, other than to change it."""
    try:
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(type(module).forward)))
    except (OSError, TypeError, SyntaxError):
        return 0.0
    return float(any(
        isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
        for node in ast.walk(tree)
    ))  # fmt: skip


def _made_at(run: Recording, kind: type[nn.Module], name: str) -> Place:
    root = f"{run.root.resolve()}/"
    try:
        path = inspect.getsourcefile(kind) or ""
        lines, first = inspect.getsourcelines(kind)
    except (OSError, TypeError):  # a class of the script itself: its module is gone after the run
        lines, first = _class_lines(run, kind)
        path = f"{root}{run.script}"
    for count, line in enumerate(lines):
        quoted = f'register_buffer("{name}"' in line.replace("'", '"')
        if path.startswith(root) and (quoted or f"self.{name} =" in line):
            return Place(path.removeprefix(root), first + count, f"{kind.__qualname__}.__init__")
    return NOWHERE


def _class_lines(run: Recording, kind: type[nn.Module]) -> tuple[list[str], int]:
    """The lines of a class of the script that was run, and where they begin."""
    text = (run.root / run.script).read_text("utf-8") if run.script else ""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            return text.splitlines()[node.lineno - 1 : node.end_lineno], node.lineno
    return [], 0


def _persistent(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "register_buffer"):
        for item in call.keywords:
            if item.arg == "persistent":
                yield fix(
                    [file.replace(item.value, "True")],
                    "keep it in the state dict",
                    "保存在状态字典中",
                )
    statement = file.statement(place.line)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        name, value = statement.targets[0].attr, file.source(statement.value)
        yield fix([file.replace(statement, f'self.register_buffer("{name}", {value})')],
                  "register it as a buffer", "注册为 buffer")  # fmt: skip
