"""torch.cuda.amp and torch.cpu.amp have become torch.amp with a device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.fix import Edit, Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import torch_name
from torchstone.lint.rule import CERTAIN, LOW, POSSIBLE, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS110",
    "deprecated-cuda-amp",
    severity=LOW,
    torch_from=(2, 4),
    say=Text(en="`{old}` is deprecated since torch 2.4", zh="`{old}` 自 torch 2.4 起已弃用"),
    why=Text(
        en="it warns with FutureWarning on each use and is going to be removed",
        zh="每次使用都会产生 FutureWarning，今后将被移除",
    ),
    suggest=Text(en="use `{new}`", zh="改用 `{new}`"),
    title=Text(
        en="The deprecated torch.cuda.amp or torch.cpu.amp is used instead of torch.amp",
        zh="使用了已弃用的 torch.cuda.amp、torch.cpu.amp，而不是 torch.amp",
    ),
    page=Text(
        en="""\
`torch.amp` takes the device as its first argument, so one spelling serves CUDA, CPU, XPU and other
accelerators. `autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` of `torch.cuda.amp`, and
`autocast` and `GradScaler` of `torch.cpu.amp`, only pass their arguments on.

A use by its full name is reported at the use, a `from torch.cuda.amp import …` once, at the import;
the fix then changes the import and every call of the file together. `autocast(flag)` becomes
`autocast("cuda", enabled=flag)`: the positional order differs. No fix where a name is handed on
instead of called. Imports under `try` or `if`, and uses behind a test on a version, keep old versions
of torch running: `possible` only.

Quiet when the project says that it runs with a torch older than 2.4.""",
        zh="""\
`torch.amp` 以设备作为第一个参数，同一写法适用于 CUDA、CPU、XPU 等。`torch.cuda.amp` 的 `autocast`、
`GradScaler`、`custom_fwd`、`custom_bwd`，以及 `torch.cpu.amp` 的 `autocast`、`GradScaler` 只是转发参数。

以全名使用时在使用处报告；`from torch.cuda.amp import …` 只在导入处报告一次，修复会同时改写导入和文件中的所有
调用。`autocast(flag)` 会改成 `autocast("cuda", enabled=flag)`，因为位置参数的顺序不同。名字被当作值传递而非调用
时不提供修复。为兼容旧版 torch 而放在 `try` 或 `if` 中的导入，以及受版本判断保护的使用，只按 `possible`（可能）报告。

项目声明使用低于 2.4 的 torch 时不报告。""",
    ),
    words=("amp",),
    bad="""\
import torch

def step(model, x, use_amp):
    with torch.cuda.amp.autocast(use_amp, dtype=torch.float16):
        return model(x)
""",
    fixed="""\
@@ -4 +4 @@
-    with torch.cuda.amp.autocast(use_amp, dtype=torch.float16):
+    with torch.amp.autocast("cuda", enabled=use_amp, dtype=torch.float16):
""",
)
_OLD = pattern(
    r"torch\.(cuda|cpu)\.amp\.(?:\w+_mode\.|grad_scaler\.)?"
    r"(autocast|GradScaler|custom_fwd|custom_bwd)$"
)
_OLD_MODULE = pattern(r"torch\.(cuda|cpu)\.amp(?:\.autocast_mode|\.grad_scaler)?$")
_NAMES = frozenset(("autocast", "GradScaler", "custom_fwd", "custom_bwd"))


@RULE.on_call(*_NAMES)
def check_call(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A call by the full name: `torch.cuda.amp.autocast()`, `amp.autocast()`."""
    if isinstance(call.func, ast.Attribute):
        yield from _at_use(call, call.func, scene)


@RULE.on(ast.FunctionDef)
def check_decorators(function: ast.FunctionDef, scene: Scene) -> Iterator[Hit]:
    """A decorator without brackets: `@torch.cuda.amp.custom_fwd`."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Attribute) and decorator.attr in _NAMES:
            yield from _at_use(decorator, decorator, scene)


@RULE.on(ast.ImportFrom)
def check_import(node: ast.ImportFrom, scene: Scene) -> Iterator[Hit]:
    """`from torch.cuda.amp import …`: one finding for the import and all its uses."""
    match = _OLD_MODULE.match(node.module or "") if not node.level else None
    names = [alias.name for alias in node.names if alias.name in _NAMES]
    if match is None or not names:
        return
    guarded = any(isinstance(up, (ast.Try, ast.If)) for up in scene.ancestors(node))
    yield RULE.at(
        node,
        confidence=POSSIBLE if guarded else CERTAIN,
        fix=None if guarded else _import_fix(node, match.group(1), scene),
        old=f"{node.module}.{names[0]}",
        new=_spelled(names[0], match.group(1)),
    )


def _spelled(name: str, device: str) -> str:
    if name.startswith("custom"):
        return f'torch.amp.{name}(device_type="{device}")'
    return f'torch.amp.{name}("{device}", …)'


def _at_use(node: ast.expr, func: ast.Attribute, scene: Scene) -> Iterator[Hit]:
    match = _OLD.match(scene.qualified(func))
    if match is None:
        return
    device, name = match.groups()
    torch = torch_name(scene)
    edits = _use_edits(node, name, device, scene)
    fix = None
    if edits is not None and torch:
        fix = safe(scene.replace(func, f"{torch}.amp.{name}"), *edits)
    yield RULE.at(
        node,
        confidence=POSSIBLE if _asks_version(node, scene) else CERTAIN,
        fix=fix,
        old=match.group(0),
        new=_spelled(name, device),
    )


def _asks_version(node: ast.AST, scene: Scene) -> bool:
    """Whether a test on a version, or on what torch has, decides that the node runs."""
    return any(
        "version" in scene.last_name(part).lower() or scene.last_name(part) == "hasattr"
        for up in scene.ancestors(node)
        if isinstance(up, (ast.If, ast.IfExp))
        for part in scene.inside(up.test)
    )


def _use_edits(node: ast.AST, name: str, device: str, scene: Scene) -> list[Edit] | None:
    """What a call or a bare decorator needs besides the new name; None when that is not plain."""
    if name.startswith("custom"):
        if isinstance(node, ast.Call):
            return None if node.args else [scene.add_keyword(node, f'device_type="{device}"')]
        return [scene.insert_after(node, f'(device_type="{device}")')]
    if not isinstance(node, ast.Call) or scene.has_star(node):
        return None
    if name == "autocast" and len(node.args) > 1:
        return None
    text = f'"{device}"'
    if name == "autocast" and node.args:
        text += ", enabled="
    elif node.args or node.keywords:
        text += ", "
    _, _, line, column = scene.span(node.func)
    if scene.lines[line - 1][column : column + 1] != "(":
        return None
    return [scene.edit(line, column + 1, line, column + 1, text)]


def _import_fix(node: ast.ImportFrom, device: str, scene: Scene) -> Fix | None:
    if any(alias.name not in _NAMES for alias in node.names):
        return None
    line, column, _, _ = scene.span(node)
    match = re.match(r"from\s+(torch[\w.]+)", scene.lines[line - 1][column:])
    if match is None:
        return None
    start, end = (column + place for place in match.span(1))
    edits = [scene.edit(line, start, line, end, "torch.amp")]
    local = {alias.asname or alias.name: alias.name for alias in node.names}
    for use in scene.all(ast.Name):
        if use.id not in local or not isinstance(use.ctx, ast.Load):
            continue
        up = scene.parent(use)
        name = local[use.id]
        if isinstance(up, ast.Call) and up.func is use:
            found = _use_edits(up, name, device, scene)
        elif name.startswith("custom") and use in getattr(up, "decorator_list", ()):
            found = _use_edits(use, name, device, scene)
        else:
            return None
        if found is None:
            return None
        edits += found
    return safe(*edits)
