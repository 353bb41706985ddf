"""An optimizer over frozen or detached parameters never changes the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import before, exclusive, same_scope
from torchstone.lint.knowledge.freezing import Freeze, freezes, parameters_of
from torchstone.lint.knowledge.layers import OPTIMIZERS
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS202",
    "frozen-parameters-in-optimizer",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="every parameter given to this optimizer is frozen: `{what}`",
        zh="传给该优化器的参数全部被冻结：`{what}`",
    ),
    why=Text(
        en="requires_grad was set to False for all of them on line {line}: their .grad stays None, "
        "step() passes over them without a word and the model never changes",
        zh="第 {line} 行把它们的 requires_grad 全部设为 False：.grad 始终为 None，step() 会默默跳过，模型永远不变",
    ),
    suggest=Text(
        en="freeze only what must stay fixed, and give the optimizer the parameters that train",
        zh="只冻结需要固定的部分，并把要训练的参数交给优化器",
    ),
    title=Text(
        en="Every parameter of an optimizer is frozen or detached, so nothing trains",
        zh="优化器的参数全部被冻结或已从计算图分离，什么也训练不了",
    ),
    page=Text(
        en="Fires when an optimizer gets `x.parameters()` and the same scope sets `requires_grad` to "
        "False for all parameters of `x` (or of what `x` is part of), before or after, and nothing "
        "in the file frees them again. Also fires for `optim.SGD([w.detach()])` and "
        "`[p.data for p in ...]`: those are new tensors that no loss ever reaches.\n\n"
        "- Quiet when a layer of `x` is replaced or `x` is rebound or handed to a function after the "
        "freeze (a new head, an adapter), when only some parameters are frozen (`if 'bn' not in "
        "name`), and when anything sets `requires_grad` to True later on.\n"
        "- From the PyTorch forum, thread 84911: the head was frozen together with the backbone.",
        zh="当优化器接收 `x.parameters()`，而同一作用域把 `x`（或 `x` 所属的整体）的全部参数 `requires_grad` 设为 "
        "False（先后均可），且文件里没有再解冻时报告。`optim.SGD([w.detach()])`、`[p.data for p in ...]` 也会报告："
        "它们是新的张量，任何损失都到达不了。\n\n"
        "- 不报告：冻结之后替换了 `x` 的某一层、`x` 被重新赋值或交给其他函数（新的分类头、适配器）；"
        "只冻结部分参数（`if 'bn' not in name`）；之后又把 `requires_grad` 设为 True。\n"
        "- 出自 PyTorch 论坛 84911：分类头与骨干网络一起被冻结。",
    ),
    bad="""\
import torch
from torch import nn, optim

model = EfficientNet.from_pretrained("efficientnet-b0")
model._fc = nn.Linear(1280, 100)
optimizer = optim.Adam(model._fc.parameters(), lr=0.001)
for name, param in model.named_parameters():
    if "bn" not in name:
        param.requires_grad = False
for param in model._fc.parameters():
    param.requires_grad = False
""",
    good="""\
@@ -6 +5,0 @@
-optimizer = optim.Adam(model._fc.parameters(), lr=0.001)
@@ -11 +10,2 @@
-    param.requires_grad = False
+    param.requires_grad = True
+optimizer = optim.Adam(model._fc.parameters(), lr=0.001)
""",
    needs=("torch",),
)

_DETACHED = Text(
    en="the optimizer gets `{what}`, a tensor cut off from the graph",
    zh="优化器收到的是 `{what}`，一个已从计算图分离的张量",
)
_DETACHED_WHY = Text(
    en="detach() and .data give a new tensor without requires_grad: no loss reaches it, its .grad "
    "stays None and step() passes over it",
    zh="detach() 和 .data 返回不带 requires_grad 的新张量：损失到达不了它，.grad 始终为 None，step() 会跳过",
)
_DETACHED_DO = Text(
    en="give the optimizer the tensor itself, or `.detach().requires_grad_()` under a name that the "
    "loss uses",
    zh="把张量本身交给优化器，或使用 `.detach().requires_grad_()` 并在损失中用这个新变量",
)


@RULE.on_call(*OPTIMIZERS)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if not scene.qualified(call.func).startswith("torch.optim."):
        return
    given = scene.argument(call, 0, "params")
    if given is None:
        return
    cut = _detached(scene, given)
    if cut is not None:
        yield RULE.at(
            cut,
            confidence=CERTAIN,
            say=_DETACHED,
            why=_DETACHED_WHY,
            suggest=_DETACHED_DO,
            what=scene.brief(cut),
        )
        return
    module = _module(scene, given)
    if not module:
        return
    rows = [row for row in freezes(scene) if same_scope(scene, row.node, call)]
    frozen = next(
        (row for row in rows if row.on is False and row.whole and _covers(row, module)), None
    )
    if frozen is None or _conditional(scene, frozen.node, call):
        return
    if (
        _bound_between(scene, frozen, call, module)
        or _freed(scene, frozen)
        or (before(frozen.node, call) and _changed(scene, frozen, call, module))
    ):
        return
    yield RULE.at(
        call,
        what=scene.brief(given),
        line=str(frozen.node.lineno),
        about=tuple(
            node
            for node in scene.inside(given)
            if isinstance(node, ast.expr) and scene.dotted(node) == module
        ),
    )


def _detached(scene: Scene, given: ast.expr) -> ast.expr | None:
    """The element of a list of parameters that is `x.detach()` or `x.data`, when all are."""
    if isinstance(given, ast.ListComp):
        elements = [given.elt]
    elif isinstance(given, (ast.List, ast.Tuple)):
        elements = list(given.elts)
    else:
        return None
    cut = [
        item
        for item in elements
        if (isinstance(item, ast.Call) and scene.method(item) == "detach")
        or (isinstance(item, ast.Attribute) and item.attr == "data")
    ]
    return cut[0] if cut and len(cut) == len(elements) else None


def _module(scene: Scene, given: ast.expr) -> str:
    """What `x.parameters()` belongs to, also inside list() and filter()."""
    if isinstance(given, ast.Call) and scene.last_name(given.func) in ("list", "filter", "iter"):
        given = given.args[-1] if given.args else given
    if isinstance(given, (ast.ListComp, ast.GeneratorExp)) and len(given.generators) == 1:
        given = given.generators[0].iter
    return parameters_of(scene, given)


def _covers(row: Freeze, module: str) -> bool:
    return bool(row.of) and (module == row.of or module.startswith(f"{row.of}."))


def _conditional(scene: Scene, node: ast.AST, call: ast.Call) -> bool:
    """Whether a branch decides about the freeze that does not decide about the optimizer."""
    if exclusive(scene, node, call):
        return True
    return any(
        isinstance(up, (ast.If, ast.Try)) and not scene.within(call, up)
        for up in scene.ancestors(node)
    )


def _freed(scene: Scene, frozen: Freeze) -> bool:
    """Whether anything may set requires_grad to True again."""
    for row in freezes(scene):
        if row.node is frozen.node or row.on is False:
            continue
        if not same_scope(scene, row.node, frozen.node) or before(frozen.node, row.node):
            return True
    return False


def _bound_between(scene: Scene, frozen: Freeze, call: ast.Call, module: str) -> bool:
    """Whether the name stands for another model by the time that something is frozen."""
    root = module.partition(".")[0]
    return before(call, frozen.node) and any(
        node.id == root
        and isinstance(node.ctx, ast.Store)
        and before(call, node)
        and before(node, frozen.node)
        for node in scene.all(ast.Name)
    )


def _changed(scene: Scene, frozen: Freeze, call: ast.Call, module: str) -> bool:
    """Whether the module gets new layers, or is handed on, between the freeze and the optimizer."""
    root = module.partition(".")[0]
    names = {frozen.of, module}
    nodes: list[ast.Name | ast.Attribute] = [*scene.all(ast.Name), *scene.all(ast.Attribute)]
    for node in nodes:
        if not before(frozen.node, node) or not before(node, call):
            continue
        text = scene.dotted(node)
        if isinstance(node.ctx, ast.Store):
            if text == root or any(text.startswith(f"{name}.") for name in names):
                return True
            continue
        up = scene.parent(node)
        handed = isinstance(up, ast.keyword) or (isinstance(up, ast.Call) and up.func is not node)
        if handed and text in names and _alters(scene, up):
            return True
    return False


def _alters(scene: Scene, up: ast.AST | None) -> bool:
    owner = scene.parent(up) if isinstance(up, ast.keyword) else up
    name = scene.last_name(owner.func) if isinstance(owner, ast.Call) else ""
    return name not in ("print", "len", "summary", "DataParallel", "DistributedDataParallel")
