"""The old spectral_norm normalises by a random number until its first training forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import before, callee, own_nodes
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls

_OLD = frozenset(("torch.nn.utils.spectral_norm", "torch.nn.utils.spectral_norm.spectral_norm"))

RULE = Rule(
    "TS212",
    "old-spectral-norm",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="old spectral_norm, and the model is evaluated (line {line}) before its first training "
        "forward",
        zh="使用旧版 spectral_norm，且模型在首次训练前向之前就被评估（第 {line} 行）",
    ),
    why=Text(
        en="it starts from random vectors and iterates only in training mode: an evaluation before "
        "that divides the weights by a random number (a 64x64 layer had norm 20 instead of 1)",
        zh="它从随机向量开始，且只在训练模式下迭代：在此之前评估，权重会除以一个随机数"
        "（实测 64x64 的层谱范数为 20 而不是 1）",
    ),
    suggest=Text(
        en="use torch.nn.utils.parametrizations.spectral_norm, which iterates 15 times when it is "
        "applied",
        zh="改用 torch.nn.utils.parametrizations.spectral_norm，它在应用时就先迭代 15 次",
    ),
    title=Text(
        en="The old torch.nn.utils.spectral_norm is wrong in eval() before the first training "
        "forward",
        zh="旧的 torch.nn.utils.spectral_norm 在首次训练前向之前，于 eval() 下结果错误",
    ),
    page=Text(
        en="MEDIUM when some function or the script itself evaluates (calls `eval()`, or a function "
        "that does) before the first training step, and weights are loaded nowhere in the file. "
        "Otherwise LOW: the function was superseded in torch 1.9 and keeps its oddities. Reported "
        "once per file.\n\n"
        "- pytorch issue 51800: testing once before the first epoch gave absurd losses.\n"
        "- The new form stores other keys in the state dict (`parametrizations.weight.original`); "
        "convert old checkpoints when you change.",
        zh="当某个函数或脚本在第一次训练之前先做评估（调用 `eval()` 或会调用它的函数），且文件里没有加载权重时为 "
        "MEDIUM；否则为 LOW：该函数自 torch 1.9 起已有替代，并保留着这些怪异行为。每个文件只报告一次。\n\n"
        "- pytorch issue 51800：第一个 epoch 之前先测试一次，得到荒谬的损失。\n"
        "- 新版的 state dict 键不同（`parametrizations.weight.original`），更换时请转换旧检查点。",
    ),
    bad="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.utils.spectral_norm(nn.Linear(8, 8))
        self.fc2 = nn.utils.spectral_norm(nn.Linear(8, 2))

def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()

def test(model, loader):
    model.eval()
    with torch.no_grad():
        return [model(x) for x in loader]

def main(model, loader, optimizer):
    for epoch in range(3):
        test(model, loader)
        train(model, loader, optimizer)
""",
    good="""\
@@ -2,0 +3 @@
+from torch.nn.utils.parametrizations import spectral_norm
@@ -7,2 +8,2 @@
-        self.fc1 = nn.utils.spectral_norm(nn.Linear(8, 8))
-        self.fc2 = nn.utils.spectral_norm(nn.Linear(8, 2))
+        self.fc1 = spectral_norm(nn.Linear(8, 8))
+        self.fc2 = spectral_norm(nn.Linear(8, 2))
""",
    torch_from=(1, 9),
)

_PLAIN = Text(
    en="torch.nn.utils.spectral_norm is the old form", zh="torch.nn.utils.spectral_norm 是旧版接口"
)
_PLAIN_WHY = Text(
    en="it iterates only in training mode, so eval() before the first training forward uses a "
    "random scale, and it replaces the weight by a plain attribute that deepcopy cannot take",
    zh="它只在训练模式下迭代，首次训练前向之前 eval() 会用随机尺度；它还把权重换成普通属性，deepcopy 会失败",
)


@RULE.on_call("spectral_norm")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    calls = [c for c in scene.calls["spectral_norm"] if scene.qualified(c.func) in _OLD]
    if not calls or call is not min(calls, key=lambda item: item.lineno):
        return
    cold = _cold(scene)
    if cold is not None:
        yield RULE.at(call, line=str(cold.lineno))
    else:
        yield RULE.at(call, severity=LOW, say=_PLAIN, why=_PLAIN_WHY)


def _cold(scene: Scene) -> ast.Call | None:
    """The evaluation that comes before the first training step of a function or script."""
    if scene.calls.get("load_state_dict") or scene.calls.get("from_pretrained"):
        return None
    for scope in (scene.root, *scene.all(ast.FunctionDef)):
        evals: list[ast.Call] = []
        trains: list[ast.Call] = []
        for node in own_nodes(scope):
            if not isinstance(node, ast.Call):
                continue
            kind = _kind(scene, node)
            if kind:
                (evals if kind == "eval" else trains).append(node)
        first = min(evals, key=lambda item: item.lineno, default=None)
        if first is not None and trains and all(before(first, item) for item in trains):
            return first
    return None


def _kind(scene: Scene, call: ast.Call) -> str:
    """`eval` or `train` for a call that evaluates or trains, itself or in this file's function."""
    method = scene.method(call)
    if method == "eval" and not call.args:
        return "eval"
    if method == "train" or call in backward_calls(scene):
        return "train"
    found = callee(scene, call, here=True)
    if found is None:
        return ""
    inner = [node for node in scene.inside(found[1]) if isinstance(node, ast.Call)]
    if any(node in backward_calls(scene) or scene.method(node) == "train" for node in inner):
        return "train"
    return "eval" if any(scene.method(node) == "eval" for node in inner) else ""
