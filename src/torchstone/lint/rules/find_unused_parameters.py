"""find_unused_parameters walks the whole graph on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS410",
    "find-unused-parameters",
    severity=LOW,
    confidence=LIKELY,
    say=Text(
        en="find_unused_parameters=True searches the autograd graph on every step",
        zh="find_unused_parameters=True 每一步都要遍历一遍计算图",
    ),
    why=Text(
        en="DDP walks the graph after each forward and keeps a usage map on the device; torch warns "
        "when it finds nothing unused, and the time is lost",
        zh="DDP 在每次前向之后遍历计算图，并在设备上维护使用情况表；若没有未使用的参数，torch 会警告，这些时间就白费了",
    ),
    suggest=Text(
        en="drop it unless some parameters really get no gradient in some steps; if their set never "
        "changes, use static_graph=True",
        zh="除非某些步骤里确实有参数得不到梯度，否则去掉；若未用参数的集合固定不变，改用 static_graph=True",
    ),
    title=Text(
        en="DistributedDataParallel searches the graph for unused parameters on every step",
        zh="DistributedDataParallel 每一步都遍历计算图查找未使用的参数",
    ),
    page=Text(
        en="Fires for the literal True in DistributedDataParallel, accelerate's "
        "DistributedDataParallelKwargs and Lightning's DDPStrategy.\n\n"
        "- LOW by itself: it is needed where branches of the model are skipped in some steps.\n"
        "- LOW with `static_graph=True`: the static graph finds unused parameters by itself, and "
        "torch warns about the pair.\n"
        "- MEDIUM when the file checkpoints activations with `use_reentrant=True`: DDP then fails "
        "with 'Expected to mark a variable ready only once'.",
        zh="DistributedDataParallel、accelerate 的 DistributedDataParallelKwargs、Lightning 的 DDPStrategy 中写了字面量 "
        "True 时报告。\n\n"
        "- 单独出现为 LOW：模型的某些分支在部分步骤被跳过时，确实需要它。\n"
        "- 与 `static_graph=True` 同时使用为 LOW：静态图会自行找出未用参数，torch 会给出警告。\n"
        "- 文件中用 `use_reentrant=True` 做激活检查点时为 MEDIUM：DDP 会报 "
        "'Expected to mark a variable ready only once'。",
    ),
    bad="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, rank):
    return DDP(net, device_ids=[rank], find_unused_parameters=True)
""",
    good="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, rank):
    return DDP(net, device_ids=[rank])
""",
    needs=("find_unused_parameters",),
)
_STATIC = Text(
    en="static_graph=True finds unused parameters by itself in the first step; torch warns that the "
    "pair makes no sense",
    zh="static_graph=True 会在第一步自行找出未使用的参数；torch 会警告两者不必同时使用",
)
_REENTRANT = Text(
    en="together with reentrant checkpointing (line {line}) DDP marks parameters twice and raises "
    "'Expected to mark a variable ready only once'",
    zh="与可重入的检查点（第 {line} 行）同时使用时，DDP 会重复标记参数并报 "
    "'Expected to mark a variable ready only once'",
)
_REENTRANT_DO = Text(
    en="use checkpoint(..., use_reentrant=False), or static_graph=True instead of "
    "find_unused_parameters",
    zh="使用 checkpoint(..., use_reentrant=False)，或用 static_graph=True 代替 find_unused_parameters",
)


@RULE.on_call("DistributedDataParallel", "DistributedDataParallelKwargs", "DDPStrategy")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    given = scene.keyword(call, "find_unused_parameters")
    if given is None or scene.literal(given) is not True:
        return
    static = scene.keyword(call, "static_graph")
    if static is not None:
        if scene.literal(static) is True:
            yield RULE.at(call, why=_STATIC)
        return
    for other in scene.calls.get("checkpoint", ()):
        reentrant = scene.keyword(other, "use_reentrant")
        if reentrant is not None and scene.literal(reentrant) is True:
            if scene.qualified(other.func) == "torch.utils.checkpoint.checkpoint":
                yield RULE.at(
                    call,
                    severity=MEDIUM,
                    why=_REENTRANT,
                    suggest=_REENTRANT_DO,
                    line=str(other.lineno),
                )
                return
    yield RULE.at(call)
