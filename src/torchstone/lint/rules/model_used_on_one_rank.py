"""A wrapped model talks to the other ranks when it runs or hands out its state."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.lint.facts.makeup import has_buffers
from torchstone.lint.knowledge.collectives import asks_rank
from torchstone.lint.knowledge.flow import callee, own_nodes, parameters, passed
from torchstone.lint.knowledge.wrapping import DDP, FSDP, wrapped_by, wraps
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.ranks import is_rank_test
from torchstone.sources.scene import Scene
from torchstone.sources.targets import target_of

RULE = Rule(
    "TS416",
    "model-used-on-one-rank",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{use}` needs every rank, but runs only where `{test}`",
        zh="`{use}` 需要所有 rank 参与，却只在 `{test}` 时执行",
    ),
    why=Text(
        en="{reason}; the ranks in this branch wait for the others, which never come",
        zh="{reason}；进入该分支的 rank 会一直等待其他 rank",
    ),
    suggest=Text(
        en="run it on all ranks, or, to evaluate with DDP on one rank, use the model inside "
        "(`.module`)",
        zh="在所有 rank 上执行；若只想在一个 rank 上用 DDP 模型评估，请使用内部模型（`.module`）",
    ),
    title=Text(
        en="A DDP or FSDP model runs, or gives its state dict, on some ranks only, and the others "
        "hang",
        zh="DDP 或 FSDP 模型只在部分 rank 上运行或导出 state dict，其余 rank 会卡住",
    ),
    page=Text(
        en="Under a test of the rank, fires for\n\n"
        "- the forward of a DDP model (also in a function of the file that gets it): DDP broadcasts "
        "the buffers, such as batch-norm statistics, from rank 0 before each forward, in evaluation "
        "too; quiet with `broadcast_buffers=False`, and harmless for models without buffers;\n"
        "- the forward, `state_dict()` and `summon_full_params` of an FSDP model: the parameters "
        "are gathered from all ranks;\n"
        "- `full_tensor()` of a DTensor.\n\n"
        "Gather the state on every rank and write the file on one.",
        zh="在 rank 判断之下，对以下用法报告：\n\n"
        "- DDP 模型的前向（包括把它传给本文件的函数）：DDP 每次前向之前都会从 rank 0 广播缓冲区（如 batch norm 统计量），"
        "评估时也不例外；`broadcast_buffers=False` 时不报告，没有缓冲区的模型不受影响；\n"
        "- FSDP 模型的前向、`state_dict()` 和 `summon_full_params`：参数要从所有 rank 收集；\n"
        "- DTensor 的 `full_tensor()`。\n\n"
        "应在所有 rank 上收集状态，只在一个 rank 上写文件。",
    ),
    bad="""\
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

def save(net, rank, path):
    model = FSDP(net)
    if rank == 0:
        torch.save(model.state_dict(), path)
""",
    good="""\
@@ -5,0 +6 @@
+    state = model.state_dict()
@@ -7 +8 @@
-        torch.save(model.state_dict(), path)
+        torch.save(state, path)
""",
    words=("DistributedDataParallel", "FullyShardedDataParallel", "full_tensor"),
)
_BUFFERS = Text("DDP broadcasts its buffers before every forward", "DDP 每次前向之前都会广播缓冲区")
_GATHERS = Text("FSDP gathers its parameters from all ranks", "FSDP 要从所有 rank 收集参数")
_DTENSOR = Text(
    "full_tensor() gathers the shards of all ranks", "full_tensor() 要收集所有 rank 的分片"
)


@RULE.on(ast.If)
def check(node: ast.If, scene: Scene) -> Iterator[Hit]:
    if not asks_rank(scene, node.test):
        return
    for block, other in ((node.body, node.orelse), (node.orelse, node.body)):
        found = _use(scene, block)
        if found is None or not is_rank_test(scene, node.test):
            continue
        use, reason = found
        again = _use(scene, other)
        if again is not None and scene.last_name(again[0].func) == scene.last_name(use.func):
            continue
        text = scene.brief(node.test)
        why = Text(
            RULE.why.en.replace("{reason}", reason.en), RULE.why.zh.replace("{reason}", reason.zh)
        )
        severity = _severity(scene, use, reason)
        if severity is None:
            continue
        yield RULE.at(
            use,
            severity=severity,
            why=why,
            use=scene.brief(use),
            test=text if block is node.body else f"not ({text})",
        )


@RULE.on_file
def guarded_in_callee(scene: Scene) -> Iterator[Hit]:
    """`evaluate(model)` of a wrapped model, where `evaluate` returns early on all ranks but one"""
    for wrap in (*wraps(scene, DDP), *wraps(scene, FSDP)):
        if not wrap.name:
            continue
        for call in scene.all(ast.Call):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(scene.dotted(item) == wrap.name for item in given):
                yield from _guarded_use(scene, call, wrap.name)


def _guarded_use(scene: Scene, call: ast.Call, model: str) -> Iterator[Hit]:
    found = target_of(scene, call)
    if found is None or scene.rank_branch(call) is not None:
        return
    home, function = found
    for name in parameters(function):
        given = passed(scene, call, function, name)
        if scene.dotted(given) != model:
            continue
        reason = _forward(scene, given) if given is not None else None
        for inner in own_nodes(function):
            if not isinstance(inner, ast.Call):
                continue
            gathers = reason is _GATHERS and home.dotted(inner.func) == f"{name}.state_dict"
            if home.dotted(inner.func) != name and not gathers:
                continue
            branch = home.rank_branch(inner)
            if branch is not None and reason is not None:
                test = home.brief(branch.test)
                why = Text(
                    RULE.why.en.replace("{reason}", reason.en),
                    RULE.why.zh.replace("{reason}", reason.zh),
                )
                hidden = f"not ({test})" if branch.early or branch.arm == "orelse" else test
                severity = _severity(scene, call, reason)
                if severity is not None:
                    yield RULE.at(
                        call, severity=severity, why=why, use=scene.brief(call), test=hidden
                    )
                return


def _severity(scene: Scene, use: ast.Call, reason: Text) -> Severity | None:
    """DDP has nothing to broadcast for a model without buffers; where nobody can tell, MEDIUM."""
    if reason is not _BUFFERS:
        return HIGH
    given = [use.func, *use.args, *(keyword.value for keyword in use.keywords)]
    models = [item for item in given if wrapped_by(scene, item, DDP)]
    buffers = [has_buffers(scene, item) for item in models]
    if any(buffers):
        return HIGH
    return MEDIUM if None in buffers or not buffers else None


def _use(scene: Scene, block: list[ast.stmt]) -> tuple[ast.Call, Text] | None:
    """The first call of a block that makes a wrapped model talk to the other ranks."""
    for statement in block:
        for node in sorted(
            (n for n in (statement, *own_nodes(statement)) if isinstance(n, ast.Call)),
            key=lambda item: (item.lineno, item.col_offset),
        ):
            reason = _talks(scene, node)
            if reason is not None:
                return node, reason
    return None


def _talks(scene: Scene, call: ast.Call) -> Text | None:
    method = scene.method(call)
    if method == "full_tensor" and not call.args:
        return _DTENSOR
    if method == "state_dict" and wrapped_by(scene, scene.receiver(call), FSDP):
        return _GATHERS
    if scene.last_name(call.func) == "summon_full_params" and call.args:
        return _GATHERS if wrapped_by(scene, call.args[0], FSDP) else None
    if isinstance(call.func, (ast.Name, ast.Attribute)) and not scene.qualified(call.func):
        reason = _forward(scene, call.func)
        if reason is not None:
            return reason
    return _through(scene, call)


def _forward(scene: Scene, model: ast.expr) -> Text | None:
    """Why a forward of this model needs the others."""
    if wrapped_by(scene, model, FSDP):
        return _GATHERS
    wrap = wrapped_by(scene, model, DDP)
    if wrap is None:
        return None
    buffers = scene.keyword(wrap, "broadcast_buffers")
    return _BUFFERS if buffers is None or scene.literal(buffers) is True else None


def _through(scene: Scene, call: ast.Call) -> Text | None:
    """A function of the file that gets a wrapped model and calls it."""
    found = callee(scene, call, here=True)
    if found is None:
        return None
    function = found[1]
    for name in parameters(function):
        given = passed(scene, call, function, name)
        if not isinstance(given, (ast.Name, ast.Attribute)):
            continue
        if any(
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Name)
            and inner.func.id == name
            for inner in own_nodes(function)
        ):
            reason = _forward(scene, given)
            if reason is not None:
                return reason
    return None
