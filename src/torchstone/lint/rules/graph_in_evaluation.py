"""Evaluation that still records a graph for backward."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.origins import returns
from torchstone.lint.facts.returned import maker_of
from torchstone.lint.facts.summary import calls_below, summary_of
from torchstone.lint.knowledge.flow import loop_around, own_nodes, parameters, passed
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import FUNCTIONS, LOOPS, Function, Scene
from torchstone.sources.targets import method_of, target_of

_MODELS = pattern(r"models?$|nets?$|networks?$|modules$|encoders$|experts$", re.I)
_WANTS_GRADIENT = frozenset(
    ("backward", "grad", "requires_grad", "requires_grad_", "jacobian", "vjp", "jvp", "enable_grad")
)

RULE = Rule(
    "TS311",
    "graph-in-evaluation",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(en="Evaluation records a graph that nobody uses", zh="评估时记录了无人使用的计算图"),
    say=Text(
        en="`{call}` runs in evaluation (`{model}.eval()`, line {line}) and still records a graph",
        zh="`{call}` 在评估阶段运行（第 {line} 行 `{model}.eval()`），却仍在记录计算图",
    ),
    why=Text(
        en="`eval()` only switches dropout and normalization; without no_grad every activation is "
        "kept until the output goes away, several times the memory of a plain forward",
        zh="`eval()` 只切换 dropout 与归一化层；没有 no_grad 时，所有激活值会保留到输出被释放，"
        "内存占用是普通前向的数倍",
    ),
    suggest=Text(
        en="put the loop under `with torch.inference_mode():` (or `torch.no_grad()`)",
        zh="把循环放进 `with torch.inference_mode():`（或 `torch.no_grad()`）",
    ),
    page=Text(
        en="Fires on a call of a model inside a loop, after `model.eval()` in the same function, "
        "when the call is under no `no_grad`, `inference_mode` or `set_grad_enabled(False)`: "
        "neither by a with-statement, nor by a decorator, nor because every caller in the project "
        "opens one.\n\n"
        "Quiet when the function asks for gradients (`backward`, `autograd.grad`, "
        "`requires_grad`), when the model goes back to `train()` in between, and when its "
        "parameters are frozen in the same file. `generate()` of transformers opens no_grad by "
        "itself and is not looked at.\n\n"
        "`inference_mode` is a little faster than `no_grad`, but its tensors can never take part "
        "in a later graph; use `no_grad` where they have to.",
        zh="触发条件：同一函数中先有 `model.eval()`，之后循环内调用该模型，而该调用不处于 `no_grad`、"
        "`inference_mode` 或 `set_grad_enabled(False)` 之下（with 语句、装饰器或项目内全部调用者打开的"
        "均算在内）。\n\n"
        "若函数需要梯度（`backward`、`autograd.grad`、`requires_grad`）、模型中途切回 `train()`，或其参数"
        "在同一文件中已冻结，则不报告。transformers 的 `generate()` 自带 no_grad，不在检查之列。\n\n"
        "`inference_mode` 略快于 `no_grad`，但其张量此后不能再参与计算图；需要时请用 `no_grad`。",
    ),
    bad="""\
import torch

def evaluate(model, loader, criterion):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += criterion(model(x), y).item()
    return total
""",
    good="""\
@@ -6,2 +6,3 @@
-    for x, y in loader:
-        total += criterion(model(x), y).item()
+    with torch.inference_mode():
+        for x, y in loader:
+            total += criterion(model(x), y).item()
""",
)


@RULE.on_call("eval")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`model.eval()` … `for x in loader: model(x)`"""
    if call.args or call.keywords or not scene.method(call):
        return
    model = _name(scene, scene.receiver(call))
    if not model:
        return
    home = scene.scope(call)
    forward = _forward(call, scene, home, model) or _through(call, scene, home, model)
    if forward is None or _gradients_wanted(scene, home) or _frozen(scene, model):
        return
    seen: set[ast.AST] = scene.cache.setdefault("graphs in evaluation", set())
    if forward in seen or _switched_by_name(scene, forward) or scene.region(forward).without_grad:
        return
    if _switches_itself(scene, forward) or _shown_without_graph(scene, forward):
        return
    seen.add(forward)
    yield RULE.at(
        forward,
        confidence=POSSIBLE if scene.is_test else None,
        call=scene.brief(forward),
        model=model.rstrip("["),
        line=str(scene.source.place(call.lineno)[1]),
    )


@RULE.on(ast.Assign)
def check_factory(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`model = load(path)`, where a function of the project puts it into eval() and returns it"""
    call, target = statement.value, statement.targets[0]
    if not isinstance(call, ast.Call) or not isinstance(target, ast.Name) or scene.is_test:
        return
    home = scene.scope(statement)
    if not scene.calls.get(target.id) or _gradients_wanted(scene, home):
        return
    forward = _forward(call, scene, home, target.id)
    found = target_of(scene, call) if forward is not None else None
    if forward is None or found is None or not _gives_evaluated(*found):
        return
    seen: set[ast.AST] = scene.cache.setdefault("graphs in evaluation", set())
    if forward in seen or _switched_by_name(scene, forward) or scene.region(forward).without_grad:
        return
    if _switches_itself(scene, forward) or _shown_without_graph(scene, forward):
        return
    seen.add(forward)
    yield RULE.at(
        forward,
        call=scene.brief(forward),
        model=target.id,
        line=str(scene.source.place(call.lineno)[1]),
    )


def _gives_evaluated(scene: Scene, function: Function) -> bool:
    """Whether every answer of a function was put into eval() by it, and not frozen."""
    given = [scene.dotted(value) for value in returns(function)]
    does = summary_of(scene, function)
    return bool(given) and all(
        name and does.has(Effect.EVAL, name) and not _frozen(scene, name) for name in given
    )


def _name(scene: Scene, receiver: ast.expr | None) -> str:
    """The model as written; for `models["g"]`, and a loop over `models.values()`, the whole."""
    if isinstance(receiver, ast.Subscript):
        base = receiver.value
        if not _MODELS.search(scene.last_name(base)):
            return ""
        each = isinstance(receiver.slice, ast.Name) and any(
            row.how == "loop" for row in scene.bindings(receiver.slice)
        )
        return f"{scene.text(base)}[" if each else scene.text(receiver)
    if not isinstance(receiver, (ast.Name, ast.Attribute)):
        return ""
    loop = (
        next((r.statement for r in scene.bindings(receiver) if r.how == "loop"), None)
        if (isinstance(receiver, ast.Name))
        else None
    )
    if isinstance(loop, ast.For):
        over = loop.iter
        if isinstance(over, ast.Call) and scene.method(over) == "values":
            over = scene.receiver(over) or over
        return f"{scene.text(over)}[" if _MODELS.search(scene.last_name(over)) else ""
    return scene.dotted(receiver) if scene.is_model(receiver) else ""


def _is_call_of(scene: Scene, forward: ast.Call, model: str) -> bool:
    if model.endswith("["):
        return isinstance(forward.func, ast.Subscript) and scene.text(forward.func).startswith(
            model
        )
    if model.endswith("]"):
        return isinstance(forward.func, ast.Subscript) and scene.text(forward.func) == model
    return scene.dotted(forward.func) == model


def _forward(call: ast.Call, scene: Scene, home: ast.AST, model: str) -> ast.Call | None:
    """The first call of the model in a loop of the same scope, before it trains again."""
    name = model.rpartition(".")[2]
    listed = model.endswith(("[", "]"))
    calls = calls_below(home) if listed else scene.calls_in(home, name)
    same = [c for c in calls if c.lineno > call.lineno]
    for forward in sorted(same, key=lambda c: (c.lineno, c.col_offset)):
        if not _is_call_of(scene, forward, model):
            continue
        loop = scene.enclosing(forward, *LOOPS)
        if loop is None or scene.scope(loop) is not home or scene.within(call, loop):
            continue
        back = any(
            call.lineno < other.lineno <= forward.lineno
            for other in scene.calls_in(home, "train")
            if scene.dotted(scene.receiver(other)) == model
        )
        return None if back else forward
    return None


def _through(call: ast.Call, scene: Scene, home: ast.AST, model: str) -> ast.Call | None:
    """The first call in a loop of a function of this file that runs the model with its graph."""
    for site in calls_below(home):
        loop = loop_around(scene, site)
        if site.lineno <= call.lineno or loop is None or scene.within(call, loop):
            continue
        found = target_of(scene, site, here=True)
        if found is None or _gradients_wanted(scene, found[1]):
            continue
        inner = _called_inside(scene, site, found[1], model)
        if any(_runs_with_graph(scene, node, inner) for node in own_nodes(found[1])):
            return site
    return None


def _called_inside(scene: Scene, site: ast.Call, function: Function, model: str) -> str:
    """What the model is called in the function: the same for a field, else the parameter."""
    if model.startswith("self."):
        return model
    for name in parameters(function):
        if scene.dotted(passed(scene, site, function, name)) == model:
            return name
    return ""


def _runs_with_graph(scene: Scene, node: ast.AST, model: str) -> bool:
    return (
        bool(model)
        and isinstance(node, ast.Call)
        and _is_call_of(scene, node, model)
        and not scene.region(node).without_grad
        and not _switched_by_name(scene, node)
    )


def _switched_by_name(scene: Scene, forward: ast.Call) -> bool:
    """Whether a context or decorator of unknown making says by its name what it does."""
    for up in scene.ancestors(forward):
        contexts: list[ast.expr] = []
        if isinstance(up, (ast.With, ast.AsyncWith)):
            contexts = [item.context_expr for item in up.items]
        elif isinstance(up, FUNCTIONS):
            contexts = up.decorator_list
        for context in contexts:
            func = context.func if isinstance(context, ast.Call) else context
            name = scene.last_name(func).lower()
            if "grad" in name or "inference" in name:
                return True
    return False


def _switches_itself(scene: Scene, forward: ast.Call) -> bool:
    """Whether the model is of a class whose `forward` runs parts of itself without gradients."""
    made = maker_of(scene, forward.func)
    while made is not None and made.name.endswith("DataParallel") and made.call.args:
        made = maker_of(made.scene, made.call.args[0])
    if made is None:
        return False
    found = made.scene.project.class_named(made.scene, made.call.func, made.name)
    method = method_of(found[0], found[1], "forward") if found is not None else None
    return method is not None and any(
        isinstance(node, ast.Call) and method[0].lexical_region(node).without_grad
        for node in own_nodes(method[1])
    )


def _shown_without_graph(scene: Scene, forward: ast.Call) -> bool:
    """Whether the answer is turned into an array without detach(): with a graph that raises an error,
    so somebody switches gradients off."""
    statement = scene.statement(forward)
    names = (
        {target.id for target in statement.targets if isinstance(target, ast.Name)}
        if isinstance(statement, ast.Assign)
        else set()
    )
    for call in scene.calls.get("numpy", ()):
        parts = list(scene.inside(call))
        if any(
            isinstance(part, ast.Attribute) and part.attr in ("detach", "data") for part in parts
        ):
            continue
        named = any(isinstance(part, ast.Name) and part.id in names for part in parts)
        if (named or forward in parts) and scene.scope(call) is scene.scope(forward):
            return True
    return False


def _gradients_wanted(scene: Scene, home: ast.AST) -> bool:
    found: dict[ast.AST, bool] = scene.cache.setdefault("gradients wanted", {})
    if home not in found:
        found[home] = any(
            (isinstance(node, ast.Attribute) and node.attr in _WANTS_GRADIENT)
            or (isinstance(node, ast.keyword) and node.arg == "requires_grad")
            or (isinstance(node, ast.Name) and node.id in _WANTS_GRADIENT)
            for node in scene.inside(home)
        )
    return found[home]


def _frozen(scene: Scene, model: str) -> bool:
    """`model.requires_grad_(False)` or a loop that sets `requires_grad = False`."""
    for call in scene.calls.get("requires_grad_", ()):
        if scene.literal(scene.argument(call, 0)) is False and (
            scene.dotted(scene.receiver(call)) == model
        ):
            return True
    found: bool | None = scene.cache.get("something is frozen")
    if found is None:
        found = scene.cache["something is frozen"] = any(
            isinstance(node.value, ast.Constant)
            and node.value.value is False
            and isinstance(node.targets[0], ast.Attribute)
            and node.targets[0].attr == "requires_grad"
            for node in scene.all(ast.Assign)
        )
    return found
