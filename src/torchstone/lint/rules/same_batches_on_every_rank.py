"""Without a distributed sampler, and with one seed, all ranks train on the same batches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.loaders import is_loader, training_loops
from torchstone.lint.knowledge.wrapping import DDP, wraps
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS419",
    "same-batches-on-every-rank",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="this loader shuffles with the same seed (line {line}) on every rank and has no "
        "distributed sampler",
        zh="该加载器在每个 rank 上用相同的种子（第 {line} 行）打乱，且没有分布式 sampler",
    ),
    why=Text(
        en="all ranks draw the same batches: N GPUs do the work of one, and the averaged gradient "
        "is that of one batch",
        zh="所有 rank 取到相同的批次：N 块 GPU 只做了一块的工作，平均后的梯度就是一个批次的梯度",
    ),
    suggest=Text(
        en="use a DistributedSampler (and set_epoch), or at least seed with `seed + rank`",
        zh="使用 DistributedSampler（并调用 set_epoch），或至少用 `seed + rank` 作为种子",
    ),
    title=Text(
        en="Every rank of a DDP program shuffles its data with the same seed and no sampler",
        zh="DDP 程序的每个 rank 都用相同种子打乱数据且没有 sampler",
    ),
    page=Text(
        en="Fires where a loop trains a DDP model on a DataLoader with `shuffle=True` and no sampler, and "
        "torch, or the loader's generator, is seeded with a value that does not depend on the rank. The "
        "loader may come from a function of another file.\n\n"
        "- Quiet where anything about the seed, the data set or the loader mentions a rank, a "
        "split or a shard, and where accelerate or Lightning prepares the loader.",
        zh="当循环在 `shuffle=True` 且没有 sampler 的 DataLoader 上训练 DDP 模型，而 torch 或加载器的 generator 用与 rank 无关的"
        "值设种子时报告。加载器可以来自其他文件的函数。\n\n"
        "- 种子、数据集或加载器提到 rank、切分或分片，或由 accelerate、Lightning 准备加载器时不报告。",
    ),
    bad="""\
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

def main(net, data, opt, seed):
    torch.manual_seed(seed)
    model = DistributedDataParallel(net)
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=4)
    for x, y in loader:
        opt.zero_grad()
        model(x, y).backward()
        opt.step()
""",
    good="""\
@@ -5,2 +5,2 @@
-def main(net, data, opt, seed):
-    torch.manual_seed(seed)
+def main(net, data, opt, seed, rank):
+    torch.manual_seed(seed + rank)
""",
)
_RANKED = pattern(r"rank|shard|split|world|process", re.I)
_RUNNERS = ("accelerate", "lightning", "pytorch_lightning", "ignite")


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if not is_loader(scene, call) or scene.is_test:
        return
    if scene.literal(scene.argument(call, 2, "shuffle")) is not True:
        return
    if scene.argument(call, 3, "sampler") or scene.argument(call, 4, "batch_sampler"):
        return
    if any(full.partition(".")[0] in _RUNNERS for full in scene.imports.aliases.values()):
        return
    data = scene.argument(call, 0, "dataset")
    made = scene.origin(data)
    if _RANKED.search(scene.text(call)) or (made is not None and _RANKED.search(scene.text(made))):
        return
    for home, _ in training_loops(scene, call):
        seed = _generator_seed(scene, call) or _seed(home)
        if seed is not None and wraps(home, DDP):
            yield RULE.at(call, line=str(home.source.place(seed.lineno)[1]))
            return


def _generator_seed(scene: Scene, load: ast.Call) -> ast.Call | None:
    """The call that seeds the loader's own generator, when it has nothing to do with the rank."""
    name = scene.dotted(scene.keyword(load, "generator"))
    for call in scene.calls.get("manual_seed", ()) if name else ():
        given = scene.text(call.args[0]) if call.args else ""
        if scene.dotted(scene.receiver(call)) == name and given and not _RANKED.search(given):
            return call
    return None


def _seed(scene: Scene) -> ast.Call | None:
    """The call that seeds torch, when no seeding of the file has to do with the rank."""
    calls = [
        c for c in scene.calls.get("manual_seed", ()) if scene.qualified(c.func).startswith("torch")
    ]
    if not calls or any(_RANKED.search(scene.text(call)) for call in calls):
        return None
    for call in calls:
        given = scene.origin(call.args[0]) if call.args else None
        if given is not None and _RANKED.search(scene.text(given)):
            return None
    return calls[0]
