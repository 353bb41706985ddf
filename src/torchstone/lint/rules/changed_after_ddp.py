"""DDP knows the parameters that existed, and required grad, when it wrapped the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.summary import sites_of
from torchstone.lint.knowledge.flow import before, loops_around, reaches
from torchstone.lint.knowledge.freezing import freezes
from torchstone.lint.knowledge.layers import holds_weights, is_parameter
from torchstone.lint.knowledge.wrapping import Wrap, wraps
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS412",
    "changed-after-ddp",
    severity=HIGH,
    confidence=LIKELY,
    words=("DistributedDataParallel",),
    say=Text(
        en="`{change}` changes the model after DistributedDataParallel wrapped it (line {line})",
        zh="`{change}` 在 DistributedDataParallel（第 {line} 行）包装之后改动了模型",
    ),
    why=Text(
        en="DDP lists the parameters once, when it wraps: new or newly unfrozen ones are never "
        "averaged over the ranks, and frozen ones make the next step fail with 'Expected to have "
        "finished reduction in the prior iteration'",
        zh="DDP 只在包装时登记一次参数：之后新增或解冻的参数不会在各 rank 间平均，被冻结的参数会使下一步报 "
        "'Expected to have finished reduction in the prior iteration'",
    ),
    suggest=Text(
        en="freeze, add and replace layers first, then wrap; for later changes wrap again",
        zh="先冻结、添加、替换层，再包装；之后若有改动需要重新包装",
    ),
    title=Text(
        en="Layers or requires_grad are changed after DistributedDataParallel listed the "
        "parameters to average",
        zh="DistributedDataParallel 登记参数之后又改动层或 requires_grad",
    ),
    page=Text(
        en="Fires, within the function that wraps, for `model.head = nn.Linear(...)`, `add_module`, "
        "`register_parameter`, and for `requires_grad` set on the wrapped model or the model "
        "inside, after the wrap. Measured on torch 2.13 with two ranks: gradients of replaced, "
        "added and unfrozen layers differ between the ranks.\n\n"
        "- Quiet when the name is unwrapped first (`model = model.module`), when the model is "
        "wrapped again after the change, and for a freeze when find_unused_parameters is given.",
        zh="在执行包装的函数内，包装之后出现 `model.head = nn.Linear(...)`、`add_module`、`register_parameter`，"
        "或对包装后的模型（或其内部模型）设置 `requires_grad` 时报告。在 torch 2.13 上用两个 rank 实测："
        "被替换、新增和解冻的层，其梯度在各 rank 间不一致。\n\n"
        "- 不报告：先取出内部模型（`model = model.module`）；改动之后重新包装；冻结且给出了 find_unused_parameters。",
    ),
    bad="""\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, rank):
    model = DDP(net, device_ids=[rank])
    model.module.head = nn.Linear(512, 10)
    return model
""",
    good="""\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, rank):
    net.head = nn.Linear(512, 10)
    return DDP(net, device_ids=[rank])
""",
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    for wrap in wraps(scene):
        if wrap.name:
            yield from _changed(scene, wrap)


def _changed(scene: Scene, wrap: Wrap) -> Iterator[Hit]:
    call = wrap.call
    rows = sorted(_changes(scene, wrap), key=lambda item: item.lineno)
    for node in rows:
        if reaches(scene, call, node) and not _rewrapped(scene, wrap, node):
            if _has_trained(scene, node):
                continue
            statement = scene.statement(call)
            about = statement.targets if isinstance(statement, ast.Assign) else []
            yield RULE.at(
                node, change=scene.brief(_head(node)), line=str(call.lineno), about=tuple(about[:1])
            )
            return


def _has_trained(scene: Scene, node: ast.stmt) -> bool:
    """Whether the training of the function is over where the model is changed."""
    home = scene.function(node) or scene.root
    steps = [call for call, _ in sites_of(scene, home, Effect.BACKWARD)]
    return bool(steps) and all(
        before(call, node)
        and not any(scene.within(node, loop) for loop in loops_around(scene, call))
        for call in steps
    )


def _head(node: ast.stmt) -> ast.AST:
    """A loop is shown by what it does."""
    return node.body[0] if isinstance(node, ast.For) else node


def _changes(scene: Scene, wrap: Wrap) -> Iterator[ast.stmt]:
    names = _aliases(wrap)
    unused = wrap.option("find_unused_parameters")
    for freeze in freezes(scene):
        whole = freeze.whole and freeze.on is False and freeze.of == wrap.name
        # all of it frozen: a teacher or a copy, whose gradients nobody waits for
        tolerated = (unused is not None and freeze.on is False) or whole
        if not tolerated and _below(freeze.of, names, itself=True):
            yield freeze.node
    for statement in scene.all(ast.Assign):
        target, value = statement.targets[0], statement.value
        if not isinstance(target, ast.Attribute) or not isinstance(value, ast.Call):
            continue
        if _below(scene.dotted(target), names) and (
            is_parameter(scene, value.func) or holds_weights(scene, value)
        ):
            yield statement
    for method in ("add_module", "register_parameter", "register_module"):
        for call in scene.calls.get(method, ()):
            owner = scene.statement(call)
            if owner is not None and _below(scene.dotted(scene.receiver(call)), names, itself=True):
                yield owner


def _aliases(wrap: Wrap) -> set[str]:
    """The names of the wrapped model and, when it keeps its own, of the model inside."""
    return {wrap.name, wrap.inner} - {""}


def _below(text: str, names: set[str], itself: bool = False) -> bool:
    return any(text.startswith(f"{name}.") or (itself and text == name) for name in names)


def _rewrapped(scene: Scene, wrap: Wrap, node: ast.stmt) -> bool:
    """Whether the model is unwrapped before the change, or wrapped again behind it."""
    for other in wraps(scene):
        if other.call is not wrap.call and before(node, other.call):
            if scene.function(other.call) is scene.function(wrap.call):
                return True
    root = wrap.name.partition(".")[0]
    return any(
        isinstance(item.targets[0], (ast.Name, ast.Attribute))
        and scene.dotted(item.targets[0]) in (wrap.name, root)
        and before(wrap.call, item)
        and before(item, node)
        for item in scene.all(ast.Assign)
        if item.value is not wrap.call and scene.scope(item) is scene.scope(node)
    )
