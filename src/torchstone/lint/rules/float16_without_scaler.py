"""float16 gradients need loss scaling."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import is_backward, scaler_calls, together
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.regions import Autocast
from torchstone.sources.scene import Scene
from torchstone.sources.values import count_before

RULE = Rule(
    "TS126",
    "float16-without-scaler",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` runs without loss scaling on a loss made under float16 autocast",
        zh="`{call}` 的损失来自 float16 autocast，却没有使用损失缩放",
    ),
    why=Text(
        en="gradients of float16 operators are float16: values below 6e-8 become 0 and layers stop "
        "learning, without an error",
        zh="float16 算子的梯度也是 float16：小于 6e-8 的值变为 0，相应的层不再学习，且不会报错",
    ),
    suggest=Text(
        en='use torch.amp.GradScaler("cuda"), or autocast with dtype=torch.bfloat16',
        zh='使用 torch.amp.GradScaler("cuda")，或让 autocast 采用 dtype=torch.bfloat16',
    ),
    title=Text(
        en="Small gradients vanish because a float16 autocast backward has no GradScaler",
        zh="float16 autocast 的反向传播没有 GradScaler，小梯度会下溢为 0",
    ),
    page=Text(
        en="""\
`torch.autocast("cuda")` means float16 unless `dtype` says otherwise. bfloat16 has float32's range
and needs no scaling.

Reported when a loss, or the output it is computed from, is bound inside a float16 autocast region
and the same function calls its `backward()` directly, in a file that neither makes nor uses a GradScaler. Quiet when the type is
chosen at run time, when autocast may be switched off by a flag, and with Accelerate, Lightning
Fabric or DeepSpeed, which scale by themselves.""",
        zh="""\
`torch.autocast("cuda")` 在未指定 `dtype` 时即为 float16。bfloat16 的范围与 float32 相同，无需缩放。

判定：损失（或计算它的输出）在 float16 autocast 区域内得到，同一函数直接对它调用 `backward()`，而文件既没有创建也没有使用
GradScaler。类型在运行时决定、autocast 可能被开关关闭，以及使用 Accelerate、Lightning Fabric 或 DeepSpeed（它们自行
缩放）时不报告。""",
    ),
    needs=("autocast",),
    bad="""\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x, y)
        loss.backward()
        optimizer.step()
""",
    good="""\
@@ -1,0 +2,2 @@
+
+scaler = torch.amp.GradScaler("cuda")
@@ -8,2 +10,3 @@
-        loss.backward()
-        optimizer.step()
+        scaler.scale(loss).backward()
+        scaler.step(optimizer)
+        scaler.update()
""",
)


@RULE.on_call("backward")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A plain backward on a name that float16 autocast has bound."""
    if not is_backward(scene, call) or scene.is_test:
        return
    if "GradScaler" in scene.calls or scaler_calls(scene, "scale") or call.args:
        return
    base = scene.receiver(call)
    while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
        base = base.func.value  # loss.mean().backward()
    if not isinstance(base, ast.Name):
        return
    cast = _made_under(base, scene)
    if cast is not None and cast.certain and cast.dtype == "float16" and cast.device != "cpu":
        yield RULE.at(call, call=scene.brief(call))


def _made_under(name: ast.Name, scene: Scene, depth: int = 2) -> Autocast | None:
    """The autocast region in which a name, or what it is computed from, was bound last."""
    rows = scene.bindings(name)
    count = count_before(rows, name)
    if not count or rows[count - 1].how not in ("assign", "unpack"):
        return None
    row = rows[count - 1]
    if not together(scene, row.node, name):
        return None
    cast = scene.lexical_region(row.node).autocast
    value = getattr(row.statement, "value", None)
    if cast is not None or depth == 1 or not isinstance(value, ast.Call):
        return cast
    for part in value.args:
        if isinstance(part, ast.Name) and (cast := _made_under(part, scene, depth - 1)):
            return cast
    return None
