"""Workers that are not persistent are started anew for every epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.loaders import bound_names, is_loader, option, used_in_loop
from torchstone.lint.rule import LIKELY, LOW, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS307",
    "loader-workers-restarted",
    severity=LOW,
    confidence=LIKELY,
    torch_from=(1, 7),
    title=Text(
        en="A DataLoader's workers are started anew for every epoch",
        zh="DataLoader 的工作进程每个 epoch 都重新启动",
    ),
    say=Text(
        en="the workers of this DataLoader are started anew for every epoch",
        zh="该 DataLoader 的工作进程每个 epoch 都会重新启动",
    ),
    why=Text(
        en="without persistent_workers every `for batch in loader` starts num_workers processes, "
        "copies the dataset into them and waits for their first batches",
        zh="不启用 persistent_workers 时，每次 `for batch in loader` 都要启动 num_workers 个进程、"
        "向其中复制数据集，并等待首批数据",
    ),
    suggest=Text(en="pass persistent_workers={value}", zh="传入 persistent_workers={value}"),
    page=Text(
        en="Fires when a DataLoader with workers and without `persistent_workers` is made once and "
        "used inside a loop of the same function. The cost is largest with many workers, a large "
        "dataset object and short epochs; where workers are spawned instead of forked (Windows, "
        "macOS) each start also imports your modules again.\n\n"
        "`persistent_workers=True` with `num_workers=0` is an error, hence the comparison when the "
        "number is a variable. Leave it off when the dataset changes between epochs: workers that "
        "live on keep the copy they got at their start. For that reason the fix is unsafe.",
        zh="触发条件：带有工作进程但未启用 `persistent_workers` 的 DataLoader 只创建一次，并在同一函数的"
        "循环中使用。工作进程多、数据集对象大、epoch 短时代价最大；以 spawn 方式启动（Windows、macOS）"
        "时，每次启动还要重新导入模块。\n\n"
        "`num_workers=0` 时传 `persistent_workers=True` 会报错，因此当数量是变量时应写成比较式。"
        "若数据集在 epoch 之间会改变，请勿启用：长期存活的工作进程只保有启动时的副本。修复因此标记为不安全。",
    ),
    bad="""\
from torch.utils.data import DataLoader

def train(dataset, step):
    loader = DataLoader(dataset, batch_size=64, num_workers=8)
    for epoch in range(10):
        for batch in loader:
            step(batch)
""",
    fixed="""\
@@ -4 +4 @@
-    loader = DataLoader(dataset, batch_size=64, num_workers=8)
+    loader = DataLoader(dataset, batch_size=64, num_workers=8, persistent_workers=True)
""",
)


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`DataLoader(dataset, num_workers=8)` used for several epochs"""
    if not is_loader(scene, call) or scene.keyword(call, "persistent_workers") is not None:
        return
    given = option(scene, call, "num_workers")
    if (
        given is None
        or scene.literal(given) == 0
        or not isinstance(given, (ast.Constant, ast.Name, ast.Attribute))
    ):
        return
    names = bound_names(scene, call)
    if not names or not used_in_loop(scene, call, names):
        return
    value = "True" if isinstance(given, ast.Constant) else f"{scene.text(given)} > 0"
    yield RULE.at(
        call,
        confidence=POSSIBLE if scene.is_test else None,
        fix=unsafe(scene.add_keyword(call, f"persistent_workers={value}")),
        value=value,
    )
