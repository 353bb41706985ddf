"""Every rank writing the same file at once gives a torn file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import callee, callers, made, own_nodes, settled
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import FUNCTIONS, Function, Scene

RULE = Rule(
    "TS405",
    "save-on-every-rank",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` runs on every rank and writes one and the same file",
        zh="`{call}` 在每个 rank 上执行，写入同一个文件",
    ),
    why=Text(
        en="the ranks write over each other: the file can end up torn, and a shared disk gets the "
        "checkpoint once per rank",
        zh="各 rank 互相覆盖：文件可能损坏，共享存储上的检查点还会由每个 rank 各写一遍",
    ),
    suggest=Text(
        en="save on rank 0 only (`if dist.get_rank() == 0:`), then let the others wait at a "
        "barrier() that all ranks call",
        zh="只在 rank 0 保存（`if dist.get_rank() == 0:`），再让所有 rank 一起调用 barrier()",
    ),
    title=Text(
        en="Every rank of a distributed script saves to one and the same file",
        zh="分布式脚本中每个 rank 都向同一个文件执行 torch.save",
    ),
    page=Text(
        en="Fires for `torch.save` in a file that starts a process group or wraps a model in DDP or "
        "FSDP, in a function that does so or that such a function comes to call, when neither the "
        "call nor a call of its function in the file stands under a test of the rank, and the path "
        "does not hold the rank.\n\n"
        "- In a class whose method wraps the model, the methods that the file calls on its objects "
        "count, and those that they call through `self`.\n"
        "- Quiet for helpers that the file does not call itself, for functions with a decorator "
        "such as rank_zero_only, for buffers in memory, and under any test whose names speak of "
        "rank, GPU, main, master or saving; `save_every` and its like say when, not who.",
        zh="文件启动了进程组，或用 DDP、FSDP 包装模型，而 `torch.save` 本身及文件内对其所在函数的调用都不在 rank 判断之下，"
        "且路径中不含 rank 时报告。\n\n"
        "- 若某个类的方法包装了模型，则文件中在其对象上调用的方法，以及它们通过 `self` 调用的方法，都计算在内。\n"
        "- 不报告：文件自身没有调用的辅助函数；带 rank_zero_only 之类装饰器的函数；写入内存缓冲区；"
        "条件中的名称涉及 rank、GPU、main、master 或保存（`save_every` 之类只说明何时保存，不说明由谁保存）。",
    ),
    bad="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main(net, loader, optimizer, train):
    dist.init_process_group("nccl")
    model = DDP(net)
    for epoch in range(10):
        train(model, loader, optimizer)
        torch.save(model.module.state_dict(), f"model-{epoch}.pt")
""",
    good="""\
@@ -10 +10,3 @@
-        torch.save(model.module.state_dict(), f"model-{epoch}.pt")
+        if dist.get_rank() == 0:
+            torch.save(model.module.state_dict(), f"model-{epoch}.pt")
+        dist.barrier()
""",
    words=("init_process_group", "DistributedDataParallel", "FullyShardedDataParallel"),
)
_SOME = pattern(
    r"rank|main|master|chief|primary|zero|save|root|process_index|worker|shard|tmp|temp|buffer|pid|uuid"
    r"|BytesIO|gpu",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"sav(?:e|ing)_?(?:every|freq|interval|step|period|epoch|iter|n_|at|each)"
    r"|(?:every|freq|interval|period)\w*_save",
    re.IGNORECASE,
)


@RULE.on_call("save")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if scene.qualified(call.func) != "torch.save" or len(call.args) < 2 or not _starts(scene):
        return
    if _own_path(scene, call.args[1]) or _guarded(scene, call):
        return
    function = scene.function(call)
    if function is not None and not _every_rank(scene, function):
        return
    yield RULE.at(call, call=scene.brief(call))


def _starts(scene: Scene) -> bool:
    """Whether the file itself sets up ranks."""
    if scene.calls.get("init_process_group"):
        return True
    return any(
        scene.qualified(item.func).startswith("torch.")
        for name in ("DistributedDataParallel", "FullyShardedDataParallel")
        for item in scene.calls.get(name, ())
    )


def _own_path(scene: Scene, path: ast.expr) -> bool:
    """Whether the path tells the ranks apart, or is no file at all."""
    value = settled(scene, path) or path
    for part in (*scene.inside(path), *scene.inside(value)):
        name = scene.last_name(part)
        if _SOME.search(name):
            return True
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and "rank" in part.value:
            return True
    return False


def _guarded(scene: Scene, node: ast.AST) -> bool:
    """Whether a test decides about the place that has to do with ranks."""
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            names = (scene.last_name(part) for part in scene.inside(up.test))
            if any(_SOME.search(_WHEN.sub("", name)) for name in names):
                return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        child = up
    return scene.rank_branch(node) is not None


def _every_rank(scene: Scene, function: Function) -> bool:
    """Whether all ranks come to a function, as far as this file shows."""
    if function.decorator_list or _SOME.search(function.name.replace("main", "")):
        named = [scene.last_name(getattr(d, "func", d)) for d in function.decorator_list]
        if any(_SOME.search(name) for name in named):
            return False
    sites = [*callers(scene, function), *_outer_calls(scene, function)]
    return function in _ranked(scene) and not any(_guarded(scene, site) for site in sites)


def _outer_calls(scene: Scene, function: Function) -> list[ast.Call]:
    """The calls of a method that its file makes on an object, not through `self`."""
    if not isinstance(scene.parent(function), ast.ClassDef):
        return []
    return [
        call
        for call in scene.calls.get(function.name, ())
        if scene.receiver(call) is not None and scene.dotted(scene.receiver(call)) != "self"
    ]


def _entries(scene: Scene, function: Function) -> list[Function]:
    """The methods that are called on objects of the class whose method sets up ranks."""
    owner = scene.parent(function)
    if not isinstance(owner, ast.ClassDef):
        return []
    return [
        item
        for item in owner.body
        if isinstance(item, FUNCTIONS)
        and (sites := _outer_calls(scene, item))
        and any(_is_made_by(scene, scene.receiver(site), owner) for site in sites)
        and not any(_guarded(scene, site) for site in sites)
    ]


def _is_made_by(scene: Scene, node: ast.AST | None, owner: ast.ClassDef) -> bool:
    source = made(scene, node)
    return isinstance(source, ast.Call) and scene.last_name(source.func) == owner.name


def _ranked(scene: Scene) -> set[ast.AST]:
    """The functions that set up ranks, and those of the file that they come to call."""
    found: set[ast.AST] | None = scene.cache.get("ranked functions")
    if found is None:
        pending = [
            function
            for name in (
                "init_process_group",
                "DistributedDataParallel",
                "FullyShardedDataParallel",
            )
            for call in scene.calls.get(name, ())
            if (function := scene.function(call)) is not None
        ]
        pending += [entry for function in pending for entry in _entries(scene, function)]
        found = set(pending)
        for function in pending:  # grows while it is walked
            for node in own_nodes(function):
                called = callee(scene, node, here=True) if isinstance(node, ast.Call) else None
                if called is not None and called[1] not in found and not _guarded(scene, node):
                    found.add(called[1])
                    pending.append(called[1])
        scene.cache["ranked functions"] = found
    return found
