"""A condition on a tensor's value makes the host wait for the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.tensors import is_tensor, on_device
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

_GUARDS = frozenset(("isnan", "isinf", "isfinite"))

RULE = Rule(
    "TS304",
    "tensor-branch-in-step-loop",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="A condition reads a tensor on every training step, and the host waits for the device",
        zh="每个训练步都用张量的值做条件判断，主机要等待设备",
    ),
    say=Text(
        en="the condition `{test}` reads a tensor back on every step",
        zh="条件 `{test}` 每个训练步都要从设备读回张量",
    ),
    why=Text(
        en="Python needs the value to choose a branch, so the host waits for the device; "
        "torch.compile breaks the graph here",
        zh="Python 必须拿到数值才能选择分支，主机只能等待设备；torch.compile 也会在此断图",
    ),
    suggest=Text(
        en="compute both ways on the device (`torch.where`, `torch.clamp`), or test every n steps",
        zh="在设备上用 `torch.where`、`torch.clamp` 表达，或每隔 n 步再判断一次",
    ),
    page=Text(
        en="Fires on `if`, `while`, `assert` and conditional expressions whose condition is "
        "evidently a tensor, such as `loss > 5` or `torch.isnan(loss)`, where it runs on every "
        "training step.\n\n"
        "A guard against nan or inf is wanted at times: it is reported as LOW. With "
        "`torch.amp.GradScaler` it is not needed, since `scaler.step` skips such steps without "
        "your own test; otherwise test every n steps.\n\n"
        "Quiet for `x is None`, for shapes and sizes, under `if step % n`, in tests, and in "
        "files that never speak of a device.",
        zh="检查每个训练步都会执行的 `if`、`while`、`assert` 与条件表达式，其条件明显是张量，例如 "
        "`loss > 5` 或 `torch.isnan(loss)`。\n\n"
        "防范 nan、inf 的检查有时是必要的，因此降为 LOW。使用 `torch.amp.GradScaler` 时无需自行判断，"
        "`scaler.step` 会跳过这样的步；其他情况可每隔 n 步检查一次。\n\n"
        "`x is None`、形状与大小的判断、`if step % n` 之下、测试代码以及完全不涉及设备的文件不报告。",
    ),
    words=("backward",),
    bad="""\
import torch

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        if loss > 100:
            loss = loss * 0.1
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    good="""\
import torch

def train(model, loader, criterion, opt, device, args):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.to(device)), y.to(device))
        (loss / args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            opt.step()
            opt.zero_grad()
""",
)


@RULE.on(ast.If, ast.While, ast.Assert, ast.IfExp)
def check(node: ast.If | ast.While | ast.Assert | ast.IfExp, scene: Scene) -> Iterator[Hit]:
    """`if loss > 5:`"""
    if not scene.in_step_loop(node.test):
        return
    first = node.test
    if isinstance(first, ast.BoolOp):
        first = first.values[0]  # what comes later may not be reached on every step
    while isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.Not):
        first = first.operand
    if not is_tensor(scene, first):
        return
    guard = any(scene.last_name(part) in _GUARDS for part in scene.inside(first))
    sure = on_device(scene) and not scene.is_test
    yield RULE.at(
        node.test,
        severity=LOW if guard else None,
        confidence=None if sure else POSSIBLE,
        test=scene.brief(node.test),
    )
