"""A DistributedSampler shuffles by epoch number, and somebody must tell it the number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.origins import returns
from torchstone.lint.facts.returned import maker_of
from torchstone.lint.facts.summary import calls_below, summary_within
from torchstone.lint.knowledge.flow import own_nodes
from torchstone.lint.knowledge.loaders import files_that_get
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import MISSING, Scene
from torchstone.sources.targets import target_of

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_SAMPLERS = frozenset(
    ("torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler")
)

RULE = Rule(
    "TS404",
    "sampler-without-set-epoch",
    severity=MEDIUM,
    highest=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`set_epoch()` is never called on this DistributedSampler",
        zh="从未对该 DistributedSampler 调用 set_epoch()",
    ),
    why=Text(
        en="it shuffles with seed + epoch, and epoch stays 0: every epoch sees the same order, the "
        "same batches and the same split over the ranks",
        zh="它用 seed + epoch 打乱，而 epoch 一直是 0：每个 epoch 的顺序、批次和各 rank 的划分都相同",
    ),
    suggest=Text(
        en="call `{sampler}.set_epoch(epoch)` at the top of every epoch",
        zh="在每个 epoch 开头调用 `{sampler}.set_epoch(epoch)`",
    ),
    title=Text(
        en="A shuffling DistributedSampler without set_epoch gives the same order in every epoch",
        zh="会打乱顺序的 DistributedSampler 没有调用 set_epoch，每个 epoch 顺序都相同",
    ),
    page=Text(
        en="Fires when a file makes a `DistributedSampler` that shuffles (the default), has a loop "
        "over epochs, and never calls `set_epoch`.\n\n"
        "- Quiet with `shuffle=False`, for samplers named after validation or test data, in files "
        "without an epoch loop, and where accelerate or Lightning runs the loop: they call it.",
        zh="当文件创建了会打乱顺序的 `DistributedSampler`（默认如此），有遍历 epoch 的循环，却从未调用 `set_epoch` "
        "时报告。\n\n"
        "- 不报告：`shuffle=False`；名称表明是验证或测试数据；文件里没有 epoch 循环；由 accelerate 或 Lightning "
        "管理循环（它们会调用）。",
    ),
    bad="""\
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def main(data, epochs, step):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    for epoch in range(epochs):
        for batch in loader:
            step(batch)
""",
    fixed="""\
@@ -7,0 +8 @@
+        sampler.set_epoch(epoch)
""",
)
_HELD_OUT = ("val", "test", "eval", "dev", "infer", "predict")
_RUNNERS = ("accelerate", "lightning", "pytorch_lightning", "ignite", "mmengine")


@RULE.on_call("DistributedSampler")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if scene.qualified(call.func) not in _SAMPLERS or scene.has_star(call):
        return
    shuffle = scene.argument(call, 3, "shuffle")
    if shuffle is not None and not _may_shuffle(scene, shuffle):
        return
    if any(node.attr == "set_epoch" for node in scene.all(ast.Attribute)):
        return
    if any(full.partition(".")[0] in _RUNNERS for full in scene.imports.aliases.values()):
        return
    statement = scene.statement(call)
    if statement is None or _held_out(scene, call, statement) or _told_elsewhere(scene, call):
        return
    loop = next((item for item in _loops(scene) if _is_epochs(scene, item)), None)
    if loop is None:
        if _trained_elsewhere(scene, call):
            yield RULE.at(call, sampler="loader.sampler")
        return
    if _told_by_callee(scene, loop):
        return
    name = scene.dotted(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    yield RULE.at(
        call, sampler=name or "loader.sampler", fix=_fix(scene, statement, loop, name, call)
    )


def _told_elsewhere(scene: Scene, call: ast.Call) -> bool:
    """Whether the function gives the sampler, or its loader, away in a project that tells samplers."""
    function = scene.function(call)
    return (
        function is not None
        and bool(returns(function))
        and bool(scene.project.files_that_call("set_epoch"))
    )


def _loops(scene: Scene) -> list[ast.For | ast.While]:
    return [*scene.all(ast.For), *scene.all(ast.While)]


def _trained_elsewhere(scene: Scene, call: ast.Call) -> bool:
    """Whether the function that makes the sampler is called before loops over epochs, all of them
    in files that can be read, and no file of the project calls `set_epoch`."""
    function = scene.function(call)
    if function is None or scene.project.files_that_call("set_epoch"):
        return False
    loops = [
        (home, loop)
        for home in files_that_get(scene, call)
        for loop in _loops(home)
        if _is_epochs(home, loop)
    ]
    return any(_gives_loader(scene, value) for value in returns(function)) and any(
        not _told_by_callee(home, loop) and not _held_out_site(home, loop) for home, loop in loops
    )


def _gives_loader(scene: Scene, value: ast.expr) -> bool:
    """Whether a returned value, or a part of a returned tuple, is a loader or a sampler."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    found = [maker_of(scene, part) for part in parts]
    return any(item.name in (*_SAMPLERS, *_LOADERS) for item in found if item is not None)


def _held_out_site(scene: Scene, loop: ast.For | ast.While) -> bool:
    """Whether nothing in the loop trains: then the order of the samples does not matter."""
    does = summary_within(scene, loop)
    return not (does.has(Effect.BACKWARD) or does.has(Effect.STEP))


def _may_shuffle(scene: Scene, shuffle: ast.expr) -> bool:
    """Whether a setting decides (`shuffle=args.shuffle`); a parameter is the caller's business."""
    value = scene.literal(shuffle)
    if value is not MISSING:
        return value is True
    return isinstance(shuffle, (ast.Attribute, ast.Subscript))


def _told_by_callee(scene: Scene, loop: ast.For | ast.While) -> bool:
    """Whether a function that the epoch loop calls tells the sampler, or cannot be read and gets
    the sampler or its loader."""
    does = summary_within(scene, loop)
    return does.has(Effect.SET_EPOCH) or any("sampler" in name.lower() for name in does.opaque)


def _held_out(scene: Scene, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether the data are for evaluation, by any name around the sampler."""
    names = [scene.last_name(n) for n in scene.inside(call)]
    if isinstance(statement, ast.Assign):
        names += [scene.last_name(target) for target in statement.targets]
    return any(word in name.lower() for name in names for word in _HELD_OUT)


def _is_epochs(scene: Scene, loop: ast.For | ast.While) -> bool:
    """Whether a loop counts epochs: by its name, or because it goes over the data each time."""
    if isinstance(loop, ast.For):
        names = [scene.last_name(n) for n in scene.inside(loop.target)]
        if any("epoch" in name.lower() for name in names):
            return True
        if not isinstance(loop.iter, ast.Call) or scene.last_name(loop.iter.func) != "range":
            return False
    return any(
        isinstance(inner, ast.For) and summary_within(scene, inner).has(Effect.BACKWARD)
        for inner in own_nodes(loop)
    ) or any(
        isinstance(inner, ast.For) and summary_within(found[0], inner).has(Effect.BACKWARD)
        for call in calls_below(loop)
        if (found := target_of(scene, call, here=True)) is not None
        for inner in own_nodes(found[1])
    )


def _fix(
    scene: Scene, statement: ast.stmt, loop: ast.For | ast.While, name: str, call: ast.Call
) -> Fix | None:
    """The first line of the epoch loop, when the sampler is known there without a branch."""
    if isinstance(loop, ast.While):
        return None
    if not name or not isinstance(loop.target, ast.Name) or not isinstance(statement, ast.Assign):
        return None
    if statement.value is not call or scene.scope(loop) is not scene.scope(statement):
        return None
    if statement not in scene.block_of(loop) or statement.lineno > loop.lineno:
        return None
    if any(isinstance(n, ast.For) and _is_epochs(scene, n) for n in own_nodes(loop)):
        return None
    line = f"{name}.set_epoch({loop.target.id})"
    return safe(scene.insert_line_before(loop.body[0], line))
