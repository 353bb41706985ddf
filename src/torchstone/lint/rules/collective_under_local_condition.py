"""A condition on this rank's own data sends the ranks different ways."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.summary import calls_below
from torchstone.lint.knowledge.collectives import NAMES, collective, collectives_in, reached
from torchstone.lint.knowledge.flow import before, same_scope
from torchstone.lint.rule import HIGH, LIKELY, POSSIBLE, Hit, Rule
from torchstone.sources.scene import FUNCTIONS, Scene
from torchstone.sources.targets import is_outside
from torchstone.sources.training import backward_calls

_LOCAL = ("isnan", "isinf", "isfinite")
_SIZES = ("any", "all", "numel", "nonzero", "item")
_LOOKS = frozenset((*_LOCAL, *_SIZES))

RULE = Rule(
    "TS403",
    "collective-under-local-condition",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{call}` runs only where `{test}`, which each rank decides by its own data",
        zh="`{call}` 只在 `{test}` 时执行，而每个 rank 按自己的数据判断",
    ),
    why=Text(
        en="when the data of the ranks differ, some enter {name} and some do not: those inside wait "
        "for ever",
        zh="各 rank 的数据不同时，有的进入 {name}，有的没有：进去的会一直等待",
    ),
    suggest=Text(
        en="make the decision common first: all_reduce the flag (MAX), then branch on the result",
        zh="先统一判断：对标志做 all_reduce（MAX），再按结果分支",
    ),
    title=Text(
        en="A collective depends on a condition over local tensors, so some ranks may wait forever",
        zh="集合通信取决于本地张量上的条件，部分 rank 可能永远等待",
    ),
    page=Text(
        en="Fires for a collective in one arm of an `if` that looks into a tensor of this rank "
        "(`isnan`, `isfinite`, `any`, `all`; `numel` and `.item()`, which may well agree on all "
        "ranks, only with confidence `possible`), and, in files that use "
        "DistributedDataParallel, for `if isnan(loss): continue` before `backward()`: the other "
        "ranks wait in the gradient all-reduce.\n\n"
        "- Quiet when the tensor went through a collective before, when the other arm runs the same "
        "collective, when a group is given, and when the branch raises.",
        zh="当集合通信位于某个 `if` 分支，而条件取决于本 rank 的张量（`isnan`、`isfinite`、`any`、`all`；"
        "`numel` 和 `.item()` 在各 rank 上很可能一致，置信度只为 `possible`（可能））"
        "时报告；在使用 DistributedDataParallel 的文件里，`backward()` 之前的 `if isnan(loss): continue` 也会报告："
        "其他 rank 会卡在梯度 all-reduce。\n\n"
        "- 不报告：该张量之前已经过集合通信；另一分支执行相同的集合通信；指定了进程组；分支抛出异常。",
    ),
    bad="""\
import torch
import torch.distributed as dist

def reduce(loss):
    if torch.isfinite(loss):
        dist.all_reduce(loss)
    return loss
""",
    good="""\
@@ -5 +5,3 @@
-    if torch.isfinite(loss):
+    bad = (~torch.isfinite(loss)).float()
+    dist.all_reduce(bad, op=dist.ReduceOp.MAX)
+    if bad.item() == 0:
""",
    words=(*NAMES, "DistributedDataParallel"),
)
_SKIPS = Text(
    en="`{test}` makes this rank alone leave out backward()",
    zh="`{test}` 会让只有这个 rank 跳过 backward()",
)


@RULE.on_call(*NAMES)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    what = collective(scene, call)
    if what is not None and what.world:
        yield from _judge(call, scene, what.name)


@RULE.on(ast.If)
def check_callee(node: ast.If, scene: Scene) -> Iterator[Hit]:
    """A function of the project that runs a collective, called under the condition"""
    if _local(scene, node.test) is None:
        return
    for arm in (node.body, node.orelse):
        for call in calls_below(ast.Module(arm, [])):
            found = None if is_outside(scene, call) else reached(scene, call)
            if found is not None and collective(scene, call) is None:
                yield from _judge(call, scene, found.name)
                return


def _judge(call: ast.Call, scene: Scene, name: str) -> Iterator[Hit]:
    child: ast.AST = call
    for up in scene.ancestors(call):
        if isinstance(up, ast.If) and child is not up.test:
            asked = _local(scene, up.test)
            if asked is not None:
                break
        if isinstance(up, (*FUNCTIONS, ast.Lambda)):
            return
        child = up
    else:
        return
    if _shared(scene, asked, up):
        return
    other = up.orelse if child in up.body else up.body
    if any(second.name == name for _, second in collectives_in(scene, other)):
        return
    sure = scene.last_name(asked.func) in (*_LOCAL, "any", "all")
    yield RULE.at(
        call,
        confidence=LIKELY if sure else POSSIBLE,
        call=scene.brief(call),
        name=name,
        test=scene.brief(up.test),
    )


@RULE.on_call("backward")
def skipped_backward(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if not scene.calls.get("DistributedDataParallel") or call not in backward_calls(scene):
        return
    statement = scene.statement(call)
    block = scene.block_of(statement) if statement is not None else []
    for item in block:
        if item is statement:
            return
        if not isinstance(item, ast.If) or not isinstance(item.body[-1], ast.Continue):
            continue
        asked = _local(scene, item.test)
        named = isinstance(asked, ast.Call) and scene.last_name(asked.func) in _LOCAL
        if asked is None or not named or _shared(scene, asked, item):
            continue
        if not backwards(scene, item):
            yield RULE.at(
                item.body[-1],
                say=_SKIPS,
                call=scene.brief(call),
                name="backward",
                test=scene.brief(item.test),
            )
            return


def backwards(scene: Scene, item: ast.If) -> bool:
    """Whether the branch goes backward too, over a zero loss, to keep the ranks together."""
    return bool(backward_calls(scene).inside(scene, item))


def _local(scene: Scene, test: ast.expr) -> ast.Call | None:
    """The part of a condition that looks into a tensor."""
    for node in scene.inside(test) if test in _asking(scene) else ():
        if not isinstance(node, ast.Call):
            continue
        name = scene.last_name(node.func)
        if name in _LOCAL:
            full = scene.qualified(node.func)
            if full.startswith(("torch.", "math.", "numpy.")) or scene.method(node):
                return node
        elif name in _SIZES and scene.method(node) and not node.keywords:
            return node
    return None


def _asking(scene: Scene) -> set[ast.AST]:
    """The expressions of a file with a call that may look into a tensor: conditions have few."""
    found: set[ast.AST] | None = scene.cache.get("looks into tensors")
    if found is None:
        found = scene.cache["looks into tensors"] = set()
        for call in scene.all(ast.Call):
            if scene.last_name(call.func) in _LOOKS:
                found.add(call)
                for up in scene.ancestors(call):
                    if isinstance(up, ast.stmt):
                        break
                    found.add(up)
    return found


def _shared(scene: Scene, asked: ast.Call, branch: ast.AST) -> bool:
    """Whether what is asked about came out of a collective before."""
    names = {n.id for n in scene.inside(asked) if isinstance(n, ast.Name)}
    for name in NAMES:
        for call in scene.calls.get(name, ()):
            if same_scope(scene, call, branch) and before(call, branch):
                inside = {n.id for n in scene.inside(call) if isinstance(n, ast.Name)}
                statement = scene.statement(call)
                bound = statement.targets if isinstance(statement, ast.Assign) else []
                inside |= {n.id for t in bound for n in scene.inside(t) if isinstance(n, ast.Name)}
                if names & inside and collective(scene, call) is not None:
                    return True
    return False
