"""Anomaly detection is a debugging aid that slows every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import loop_around
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import FUNCTIONS, Scene
from torchstone.sources.training import backward_calls

_HOMES = ("torch.autograd", "torch.autograd.anomaly_mode")
_SWITCHES = frozenset(f"{home}.set_detect_anomaly" for home in _HOMES)
_CONTEXTS = frozenset(f"{home}.detect_anomaly" for home in _HOMES)

RULE = Rule(
    "TS321",
    "anomaly-detection-left-on",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="Anomaly detection stays on and slows every step", zh="异常检测一直打开，拖慢每一步"
    ),
    say=Text(en="`{call}` is on for every step", zh="`{call}` 对每一步都生效"),
    why=Text(
        en="it keeps a stack trace for every operation of the forward and checks every gradient "
        "for nan: steps take 1.65 to 4 times as long",
        zh="它为前向的每个操作记录调用栈，并检查每个梯度是否为 nan：单步耗时变为 1.65–4 倍",
    ),
    suggest=Text(
        en="remove it, or put it behind a flag that is off by default",
        zh="将其删除，或放到默认关闭的开关之后",
    ),
    page=Text(
        en="Fires on `torch.autograd.set_detect_anomaly(True)` and on "
        "`with torch.autograd.detect_anomaly():` when nothing decides about it: no enclosing `if`, "
        "no variable as the argument. Quiet in tests.\n\n"
        "A `with` block ends by itself: it counts only when it holds a training loop, or stands in "
        "one. Around a single backward, outside any loop of the function, it is the usual way to "
        "look at one bad batch.\n\n"
        "The fix removes the statement: unsafe, since somebody may be debugging right now.",
        zh="检查 `torch.autograd.set_detect_anomaly(True)` 与 `with torch.autograd.detect_anomaly():`，"
        "且没有任何条件控制：不在 `if` 之下，参数也不是变量。测试代码不报告。\n\n"
        "`with` 块会自行结束：只有当它包住训练循环，或位于训练循环之内时才报告。若只包住循环之外的一次 backward，"
        "那是排查某个异常批次的常见写法。\n\n"
        "修复会删除该语句；可能正在调试，因此标记为不安全。",
    ),
    bad="""\
import torch

torch.autograd.set_detect_anomaly(True)

def train(model, x):
    model(x).sum().backward()
""",
    fixed="""\
@@ -3 +2,0 @@
-torch.autograd.set_detect_anomaly(True)
""",
)


@RULE.on_call("set_detect_anomaly", "detect_anomaly")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.autograd.set_detect_anomaly(True)`"""
    full = scene.qualified(call.func)
    if full in _SWITCHES:
        if scene.literal(scene.argument(call, 0, "mode")) is not True:
            return
    elif full not in _CONTEXTS:
        return
    for up in scene.ancestors(call):
        if isinstance(up, (ast.If, ast.IfExp)):
            return
        if isinstance(up, FUNCTIONS):
            break
    if isinstance(scene.parent(call), ast.withitem) and not _around_steps(scene, call):
        return
    yield RULE.at(
        call,
        confidence=POSSIBLE if scene.is_test else None,
        fix=_fix(call, scene),
        call=scene.brief(call),
    )


def _around_steps(scene: Scene, call: ast.Call) -> bool:
    """Whether a with-statement holds a loop of training steps, or stands in one."""
    block = scene.statement(call)
    if block is None or loop_around(scene, block) is not None:
        return block is not None
    return any(
        scene.within(loop, block)
        for step in backward_calls(scene)
        if (loop := loop_around(scene, step)) is not None
    ) or any(
        isinstance(node, ast.Call) and scene.last_name(node.func).startswith(("fit", "train"))
        for statement in getattr(block, "body", ())
        for node in scene.inside(statement)
    )


def _fix(call: ast.Call, scene: Scene) -> Fix | None:
    statement = scene.parent(call)
    edit = scene.delete_line(statement) if isinstance(statement, ast.Expr) else None
    return unsafe(edit) if edit is not None else None
