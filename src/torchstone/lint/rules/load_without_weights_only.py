"""torch.load without weights_only runs, before torch 2.6, whatever code the file holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.knowledge.flow import made
from torchstone.lint.rule import LOW, MEDIUM, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

_SAFE_SINCE = (2, 6)
_OLD = Text(
    en="`{call}` unpickles without limits: this project admits torch {oldest}, and the default is "
    "safe only since 2.6",
    zh="`{call}` 不受限制地反序列化：本项目允许 torch {oldest}，而默认值自 2.6 起才是安全的",
)
_WHOLE_MODEL = Text(
    en="`{save}` in line {line} stores a whole model, which `weights_only=True` refuses: save "
    "`state_dict()` instead and load that with `weights_only=True`; there is no fix for this place",
    zh="第 {line} 行的 `{save}` 保存的是整个模型，`weights_only=True` 会拒绝加载：请改为保存 `state_dict()`，再以 "
    "`weights_only=True` 加载；此处不提供修复",
)

RULE = Rule(
    "TS509",
    "load-without-weights-only",
    group="upgrade",
    severity=LOW,
    aliases=("TOR102",),
    torch_from=(1, 13),
    title=Text(
        en="A checkpoint is loaded without `weights_only`, so before torch 2.6 it can run any code",
        zh="加载检查点未指定 `weights_only`，在 torch 2.6 之前可能执行任意代码",
    ),
    say=Text(
        en="`{call}` leaves `weights_only` to the torch version: safe since 2.6, unsafe before",
        zh="`{call}` 未指定 `weights_only`，取决于 torch 版本：2.6 起安全，之前不安全",
    ),
    why=Text(
        en="a checkpoint is a pickle: without `weights_only=True` whoever wrote the file can run "
        "any code on this machine",
        zh="检查点是 pickle 文件：若没有 `weights_only=True`，文件的作者可以在本机执行任意代码",
    ),
    suggest=Text(
        en="pass `weights_only=True`; where the file holds more than tensors, allow those classes "
        "with `torch.serialization.safe_globals`",
        zh="传入 `weights_only=True`；若文件中不止张量，用 `torch.serialization.safe_globals` 放行所需的类",
    ),
    page=Text(
        en="Fires on `torch.load` without `weights_only`. The argument exists since torch 1.13; "
        "its default became `True` with torch 2.6.\n\n"
        "- the project's oldest torch is below 2.6: MEDIUM\n"
        "- the project does not say which torch: LOW, since the answer depends on where it runs\n"
        "- the project asks for 2.6 or newer: quiet, except with `pickle_module`, which switches "
        "the protection off\n\n"
        "Quiet in tests and under a condition that asks for the version. An explicit "
        "`weights_only=False` is full-pickle-load's business. The fix is unsafe: files that hold "
        "other objects then fail to load. There is none where the same file stores a whole model "
        "(`torch.save(model, path)`), or for another `pickle_module`.",
        zh="检查未带 `weights_only` 的 `torch.load`。该参数自 torch 1.13 起存在，默认值自 2.6 起改为 "
        "`True`。\n\n"
        "- 项目支持的最低 torch 低于 2.6：MEDIUM\n"
        "- 项目未说明 torch 版本：LOW，因为结果取决于运行环境\n"
        "- 项目要求 2.6 或更新：不报告；但使用 `pickle_module` 时保护会被关闭，仍会报告\n\n"
        "测试代码以及版本判断之下不报告。显式的 `weights_only=False` 由 full-pickle-load 负责。修复不安全："
        "含有其他对象的文件将无法加载。同一文件中保存了整个模型（`torch.save(model, path)`）或使用其他 "
        "`pickle_module` 时不提供修复。",
    ),
    bad=(
        """\
import torch

state = torch.load('model.pt', map_location='cpu')
""",
    ),
    good=(
        """\
import torch

state = torch.load('model.pt', map_location='cpu', weights_only=True)
""",
    ),
    fixed=(
        """\
@@ -3 +3 @@
-state = torch.load('model.pt', map_location='cpu')
+state = torch.load('model.pt', map_location='cpu', weights_only=True)
""",
    ),
)


@RULE.on_call("load")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.load(path)`"""
    if scene.qualified(call.func) not in ("torch.load", "torch.serialization.load"):
        return
    if any(keyword.arg in ("weights_only", None) for keyword in call.keywords):
        return
    own_pickle = scene.argument(call, 2, "pickle_module") is not None
    oldest = scene.project.torch
    known_safe = oldest is not None and oldest >= _SAFE_SINCE
    if (known_safe and not own_pickle) or guarded(scene, call):
        return
    old = oldest is not None and not known_safe
    saved = _whole_model(scene, call)
    no_fix = own_pickle or saved is not None
    yield RULE.at(
        call,
        severity=MEDIUM if own_pickle else None,
        confidence=POSSIBLE if scene.is_test else None,
        say=_OLD if old else None,
        suggest=None if saved is None else _WHOLE_MODEL,
        fix=None if no_fix else unsafe(scene.add_keyword(call, "weights_only=True")),
        call=scene.brief(call),
        save=scene.brief(saved) if saved is not None else "",
        line=str(saved.lineno) if saved is not None else "",
        oldest=".".join(map(str, oldest)) if oldest else "",
    )


def _whole_model(scene: Scene, load: ast.Call) -> ast.Call | None:
    """A `torch.save(model, path)` of this file whose result may be what is loaded here."""
    path = scene.literal(scene.argument(load, 0, "f"))
    for save in scene.calls.get("save", ()):
        if scene.qualified(save.func) not in ("torch.save", "torch.serialization.save"):
            continue
        other = scene.literal(scene.argument(save, 1, "f"))
        if isinstance(path, str) and isinstance(other, str) and path != other:
            continue
        stored = scene.argument(save, 0, "obj")
        parts = stored.values if isinstance(stored, ast.Dict) else [stored]
        if any(_is_whole(scene, part) for part in parts):
            return save
    return None


def _is_whole(scene: Scene, stored: ast.expr | None) -> bool:
    if not isinstance(stored, (ast.Name, ast.Attribute)):
        return False
    source = made(scene, stored)
    if isinstance(source, (ast.Dict, ast.DictComp)) or scene.method(source) == "state_dict":
        return False
    return scene.is_model(stored)
