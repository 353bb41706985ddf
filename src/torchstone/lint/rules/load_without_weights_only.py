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
_USED_WHOLE = Text(
    en="what is loaded is used as an object (`{use}`, line {line}), which `weights_only=True` refuses: "
    "save `state_dict()` instead and load that with `weights_only=True`; there is no fix for this place",
    zh="加载的结果被当作对象使用（第 {line} 行的 `{use}`），`weights_only=True` 会拒绝加载：请改为保存 `state_dict()`，再以 "
    "`weights_only=True` 加载；此处不提供修复",
)
_OWN_PICKLE = Text(
    en="`{call}` unpickles without limits: another `pickle_module` switches `weights_only` off",
    zh="`{call}` 不受限制地反序列化：指定其他 `pickle_module` 会关闭 `weights_only`",
)
# methods of modules and other objects that neither tensors in a dict nor numbers have
_OF_OBJECTS = frozenset(
    "eval train to cuda state_dict parameters named_parameters modules named_modules children half "
    "requires_grad_ forward module generate predict fuse".split()
)

RULE = Rule(
    "TS509",
    "load-without-weights-only",
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
        "(`torch.save(model, path)`), where what is loaded is used as one (`.eval()`, `.to()`, a call), "
        "or for another `pickle_module`.",
        zh="检查未带 `weights_only` 的 `torch.load`。该参数自 torch 1.13 起存在，默认值自 2.6 起改为 "
        "`True`。\n\n"
        "- 项目支持的最低 torch 低于 2.6：MEDIUM\n"
        "- 项目未说明 torch 版本：LOW，因为结果取决于运行环境\n"
        "- 项目要求 2.6 或更新：不报告；但使用 `pickle_module` 时保护会被关闭，仍会报告\n\n"
        "测试代码以及版本判断之下不报告。显式的 `weights_only=False` 由 full-pickle-load 负责。修复不安全："
        "含有其他对象的文件将无法加载。同一文件中保存了整个模型（`torch.save(model, path)`）、加载结果被当作模型使用（`.eval()`、`.to()`、调用）或使用其他 "
        "`pickle_module` 时不提供修复。",
    ),
    bad="""\
import torch

state = torch.load('model.pt', map_location='cpu')
""",
    fixed="""\
@@ -3 +3 @@
-state = torch.load('model.pt', map_location='cpu')
+state = torch.load('model.pt', map_location='cpu', weights_only=True)
""",
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
    use = _used_whole(scene, call) if saved is None else None
    place = saved or use
    yield RULE.at(
        call,
        severity=MEDIUM if own_pickle else None,
        confidence=POSSIBLE if scene.is_test else None,
        say=_OWN_PICKLE if own_pickle else _OLD if old else None,
        suggest=_WHOLE_MODEL if saved is not None else _USED_WHOLE if use is not None else None,
        fix=None if own_pickle or place else unsafe(scene.add_keyword(call, "weights_only=True")),
        call=scene.brief(call),
        save=scene.brief(saved) if saved is not None else "",
        use=scene.brief(use) if use is not None else "",
        line=str(getattr(place, "lineno", "")),
        oldest=".".join(map(str, oldest)) if oldest else "",
    )


def _used_whole(scene: Scene, load: ast.Call) -> ast.expr | None:
    """Where what is loaded is used as an object rather than as a dict of tensors."""
    found = _object_use(scene, load)
    if found is not None:
        return found
    statement = scene.statement(load)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {scene.dotted(target) for target in targets} - {""}
    if not names or statement is None:
        return None
    own = any(name.startswith("self.") for name in names)
    home = (scene.class_of(load) if own else None) or scene.scope(load)
    nodes = (node for node in scene.inside(home) if isinstance(node, (ast.Name, ast.Attribute)))
    return next(
        (
            use
            for node in nodes
            if isinstance(node.ctx, ast.Load) and scene.dotted(node) in names
            if (use := _object_use(scene, node)) is not None
        ),
        None,
    )


def _object_use(scene: Scene, node: ast.expr) -> ast.expr | None:
    """`x.eval()`, `x(…)`, and the same of a part: `x["model"].state_dict()`."""
    up = scene.parent(node)
    while isinstance(up, ast.Subscript) and up.value is node:
        node, up = up, scene.parent(up)
    if isinstance(up, ast.Call) and up.func is node:
        return up
    called = scene.parent(up) if isinstance(up, ast.Attribute) else None
    if isinstance(up, ast.Attribute) and up.attr in _OF_OBJECTS:
        return called if isinstance(called, ast.Call) else up
    chained = isinstance(up, ast.Attribute) and up.attr in ("float", "cpu", "double")
    return _object_use(scene, called) if chained and isinstance(called, ast.Call) else None


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
