"""A DataLoader takes a sampler or shuffle=True, never both."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.flow import made
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS406",
    "sampler-with-shuffle",
    group="distributed",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="this DataLoader gets {sampler} and shuffle=True",
        zh="该 DataLoader 同时收到 {sampler} 和 shuffle=True",
    ),
    why=Text(
        en="DataLoader raises ValueError: sampler option is mutually exclusive with shuffle",
        zh="DataLoader 会抛出 ValueError：sampler option is mutually exclusive with shuffle",
    ),
    suggest=Text(
        en="drop shuffle=True here; a DistributedSampler shuffles by itself",
        zh="去掉这里的 shuffle=True；DistributedSampler 自己会打乱",
    ),
    title=Text(
        en="a DataLoader gets a sampler together with shuffle=True",
        zh="DataLoader 同时传入采样器和 shuffle=True",
    ),
    page=Text(
        en="Fires when `sampler=` or `batch_sampler=` is an object that the file visibly makes, and "
        "`shuffle` is the literal True.\n\n"
        "- Quiet for `shuffle=(sampler is None)`, and when the sampler may be None in a run without "
        "ranks.",
        zh="当 `sampler=` 或 `batch_sampler=` 是文件中明确创建的对象，且 `shuffle` 为字面量 True 时报告。\n\n"
        "- `shuffle=(sampler is None)`，或非分布式运行时采样器可能为 None 时，不报告。",
    ),
    bad=(
        """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data):
    sampler = DistributedSampler(data)
    return DataLoader(data, batch_size=8, shuffle=True, sampler=sampler)
""",
    ),
    fixed=(
        """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data):
    sampler = DistributedSampler(data)
    return DataLoader(data, batch_size=8, shuffle=False, sampler=sampler)
""",
    ),
    good=(
        """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data, ranks):
    sampler = DistributedSampler(data) if ranks > 1 else None
    return DataLoader(data, shuffle=sampler is None, sampler=sampler)
""",
        """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data, ranks):
    sampler = None
    if ranks > 1:
        sampler = DistributedSampler(data)
        return DataLoader(data, sampler=sampler)
    return DataLoader(data, shuffle=True, sampler=sampler)
""",
    ),
)


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    shuffle = scene.argument(call, 2, "shuffle")
    if shuffle is None or not isinstance(shuffle, ast.Constant) or shuffle.value is not True:
        return
    if not scene.qualified(call.func).startswith("torch.utils.data"):
        return
    sampler = scene.argument(call, 3, "sampler") or scene.argument(call, 4, "batch_sampler")
    source = made(scene, sampler)
    if not isinstance(source, ast.Call):
        return
    name = scene.last_name(source.func)
    if not name.endswith("Sampler"):
        return
    yield RULE.at(call, sampler=name, fix=safe(scene.replace(shuffle, "False")))
