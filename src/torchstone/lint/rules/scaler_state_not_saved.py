"""A checkpoint without the scaler's state restarts its search for a scale."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import is_scaler, scaler_calls
from torchstone.lint.rule import LIKELY, LOW, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS128",
    "scaler-state-not-saved",
    severity=LOW,
    confidence=LIKELY,
    say=Text(
        en="the checkpoint holds `{optimizer}` but not the GradScaler's state",
        zh="检查点保存了 `{optimizer}`，却没有保存 GradScaler 的状态",
    ),
    why=Text(
        en="after a resume the scale starts again at 65536: the first steps overflow and are "
        "skipped, or small gradients are lost until it has grown",
        zh="恢复训练后缩放因子重新从 65536 开始：最初几步会溢出而被跳过，或在其增长之前丢失小梯度",
    ),
    suggest=Text(
        en="save `{scaler}.state_dict()` with it, and load it on resume",
        zh="一并保存 `{scaler}.state_dict()`，恢复时加载",
    ),
    title=Text(
        en="A checkpoint holds the optimizer's state but not the GradScaler's, so a resumed run "
        "starts with a wrong scale",
        zh="检查点保存了优化器状态却没有 GradScaler 状态，恢复训练时缩放因子不对",
    ),
    page=Text(
        en="""\
The scaler's state is one number and a counter; with them a resumed run continues bit for bit.

Reported when a file scales a loss with a GradScaler that it makes itself, writes an optimizer's
`state_dict()` into a checkpoint, and never asks the scaler for its own. Quiet when a scaler's
`state_dict` or `load_state_dict` appears anywhere in the file, when the scaler comes from
elsewhere, and in tests.""",
        zh="""\
GradScaler 的状态只是一个数和一个计数器；有了它们，恢复后的训练才能逐位一致地继续。

判定：文件用自己创建的 GradScaler 缩放损失，把优化器的 `state_dict()` 写入检查点，却从未取 scaler 的状态。文件中出现
scaler 的 `state_dict` 或 `load_state_dict`、scaler 来自别处以及测试中不报告。""",
    ),
    needs=("GradScaler", "save"),
    bad="""\
import torch

scaler = torch.amp.GradScaler("cuda")

def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
""",
    good="""\
@@ -13 +13,2 @@
-    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
+    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
+    torch.save({**state, "scaler": scaler.state_dict()}, "last.pt")
""",
)


@RULE.on_call("state_dict")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """The first `optimizer.state_dict()` of a file whose scaler is never asked."""
    if "GradScaler" not in scene.calls or "save" not in scene.calls:
        return
    scaled = scaler_calls(scene, "scale")
    if not scaled or call is not _first(scene) or scene.is_test:
        return
    yield RULE.at(
        call,
        optimizer=scene.brief(call),
        scaler=scene.dotted(scene.receiver(scaled[0])) or "scaler",
    )


def _first(scene: Scene) -> ast.Call | None:
    """The first `optimizer.state_dict()`; None when a scaler's state is asked for or loaded."""
    key = "first optimizer state"
    if key not in scene.cache:
        saved, loaded = (scene.calls.get(name, []) for name in ("state_dict", "load_state_dict"))
        known = any(is_scaler(scene, scene.receiver(item)) for item in (*saved, *loaded))
        of_optimizer = (item for item in saved if scene.is_optimizer(scene.receiver(item)))
        scene.cache[key] = None if known else next(of_optimizer, None)
    found: ast.Call | None = scene.cache[key]
    return found
