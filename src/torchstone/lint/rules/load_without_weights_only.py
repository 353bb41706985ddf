"""torch.load without weights_only runs, before torch 2.6, whatever code the file holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.knowledge.tensors import in_tests
from torchstone.lint.rule import LOW, MEDIUM, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

_SAFE_SINCE = (2, 6)
_OLD = Text(
    en="`{call}` unpickles without limits: this project admits torch {oldest}, and the default is "
    "safe only since 2.6",
    zh="`{call}` 不受限制地反序列化：本项目允许 torch {oldest}，而默认值自 2.6 起才是安全的",
)

RULE = Rule(
    "TS509",
    "load-without-weights-only",
    group="upgrade",
    severity=LOW,
    aliases=("TOR102",),
    torch_from=(1, 13),
    title=Text(
        en="`torch.load` does not say whether it trusts the file",
        zh="`torch.load` 未说明是否信任该文件",
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
        "other objects then fail to load.",
        zh="检查未带 `weights_only` 的 `torch.load`。该参数自 torch 1.13 起存在，默认值自 2.6 起改为 "
        "`True`。\n\n"
        "- 项目支持的最低 torch 低于 2.6：MEDIUM\n"
        "- 项目未说明 torch 版本：LOW，因为结果取决于运行环境\n"
        "- 项目要求 2.6 或更新：不报告；但使用 `pickle_module` 时保护会被关闭，仍会报告\n\n"
        "测试代码以及版本判断之下不报告。显式的 `weights_only=False` 由 full-pickle-load 负责。修复不安全："
        "含有其他对象的文件将无法加载。",
    ),
    bad=(
        """\
import torch

state = torch.load('model.pt', map_location='cpu')
""",
        """\
import dill
import torch

state = torch.load('model.pt', pickle_module=dill)
""",
    ),
    good=(
        """\
import torch

state = torch.load('model.pt', weights_only=True)
""",
        """\
import torch

def read(path, **options):
    return torch.load(path, **options)
""",
        """\
import json
import torch

state = json.load(open('model.json'))
""",
        """\
import torch

model = torch.jit.load('model.pt')
""",
    ),
    fixed=(
        """\
import torch

state = torch.load('model.pt', map_location='cpu', weights_only=True)
""",
        "",
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
    yield RULE.at(
        call,
        severity=MEDIUM if old or own_pickle else None,
        confidence=POSSIBLE if in_tests(scene) else None,
        say=_OLD if old else None,
        fix=None if own_pickle else unsafe(scene.add_keyword(call, "weights_only=True")),
        call=scene.brief(call),
        oldest=".".join(map(str, oldest)) if oldest else "",
    )
