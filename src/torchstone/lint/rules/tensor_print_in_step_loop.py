"""Printing a tensor on every step reads it back from the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.tensors import is_tensor, on_device
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

_LOGGERS = frozenset(("logger", "logging", "log", "LOGGER", "LOG", "_logger"))

RULE = Rule(
    "TS303",
    "tensor-print-in-step-loop",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="A tensor is printed on every training step, and the host waits for the device",
        zh="每个训练步都打印张量，主机要等待设备",
    ),
    say=Text(
        en="printing `{tensor}` on every step waits for the device",
        zh="每个训练步都打印 `{tensor}`，每次都要等待设备",
    ),
    why=Text(
        en="turning a tensor into text copies it to the host first, so the device idles after each "
        "step, and the terminal adds its own time",
        zh="张量要先拷回主机才能变成文字，设备在每一步之后都会空闲，终端输出本身也要耗时",
    ),
    suggest=Text(
        en="print every n steps: `if step % 100 == 0:`",
        zh="每隔 n 步打印一次：`if step % 100 == 0:`",
    ),
    page=Text(
        en="Fires on `print(...)`, a logger's call or `set_postfix`/`set_description` of a progress "
        "bar that gets a tensor as it is, in an f-string or in `.format`, where it runs on every "
        "training step. What `backward()` runs on is a tensor, however it was made.\n\n"
        "Quiet under `if step % n` or a condition that asks for logging, for logger calls at "
        "debug level, in tests, and in files that never speak of a device. `loss.item()` inside a "
        "print is item-in-step-loop's business.",
        zh="检查每个训练步都会执行的 `print(...)`、日志调用以及进度条的 `set_postfix`、"
        "`set_description`，其参数直接是张量，或在 f-string、`.format` 中含有张量。"
        "调用过 `backward()` 的值无论如何得来都是张量。\n\n"
        "在 `if step % n` 或日志条件之下、debug 级别的日志、测试代码以及完全不涉及设备的文件中不报告。"
        "打印中的 `loss.item()` 由 item-in-step-loop 负责。",
    ),
    needs=("backward",),
    bad="""\
import torch

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print('loss', loss)
""",
    good="""\
@@ -4 +4 @@
-    for x, y in loader:
+    for step, (x, y) in enumerate(loader):
@@ -9 +9,2 @@
-        print('loss', loss)
+        if step % 100 == 0:
+            print('loss', loss)
""",
)


@RULE.on_call("print", "info", "warning", "set_postfix", "set_description", "set_postfix_str")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`print(loss)`"""
    func = call.func
    if isinstance(func, ast.Attribute):
        if func.attr in ("info", "warning") and scene.last_name(func.value) not in _LOGGERS:
            return
    elif not (isinstance(func, ast.Name) and func.id == "print"):
        return
    if not scene.in_step_loop(call):
        return
    for part in _shown(call, scene):
        if is_tensor(scene, part):
            sure = on_device(scene) and not scene.is_test
            yield RULE.at(call, confidence=None if sure else POSSIBLE, tensor=scene.brief(part))
            return


def _shown(call: ast.Call, scene: Scene) -> Iterator[ast.expr]:
    """The expressions that become text."""
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(argument, ast.JoinedStr):
            for piece in argument.values:
                if isinstance(piece, ast.FormattedValue):
                    yield piece.value
        elif isinstance(argument, ast.BinOp) and isinstance(argument.left, ast.Constant):
            right = argument.right
            yield from right.elts if isinstance(right, ast.Tuple) else [right]
        elif isinstance(argument, ast.Call) and scene.method(argument) == "format":
            yield from argument.args
        elif isinstance(argument, ast.Dict):
            yield from argument.values
        else:
            yield argument
