"""After an evaluation inside the training loop, the model must go back to training mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect, Event, effect_of
from torchstone.lint.facts.makeup import depends_on_mode
from torchstone.lint.facts.summary import Summary, calls_below, handed, summary_at
from torchstone.lint.knowledge.flow import before, loops_around, same_scope
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import LOOPS, Scene

RULE = Rule(
    "TS205",
    "eval-left-on",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{model}.eval()` runs inside the training loop, and nothing there calls train() again",
        zh="训练循环中调用了 `{model}.eval()`，之后没有再调用 train()",
    ),
    why=Text(
        en="from the second round on the model trains in evaluation mode: dropout is off and batch "
        "norm neither uses nor updates batch statistics",
        zh="从第二轮起模型一直在评估模式下训练：dropout 失效，batch norm 既不使用也不更新批统计量",
    ),
    suggest=Text(
        en="call `{model}.train()` at the top of every epoch, before the training batches",
        zh="在每个 epoch 开头、训练批次之前调用 `{model}.train()`",
    ),
    title=Text(
        en="A training loop switches the model to eval() and never back",
        zh="训练循环把模型切到 eval() 后没有切回",
    ),
    page=Text(
        en="Fires when a loop that steps an optimizer also puts the trained model into `eval()`, "
        "itself or in a function of the project that it calls, and neither the loop nor any function "
        "it calls uses `train()`.\n\n"
        "- `eval()` once before the loop, or at the top of the training function itself, is a choice "
        "(frozen statistics) and quiet; so is a loop that leaves right after the evaluation.\n"
        "- Quiet when the model is handed to a function that cannot be seen (it may call "
        "`train()`), and for models that the loop does not train: a teacher, a metric.\n"
        "- Harmless for a model without dropout and batch norm.",
        zh="当一个执行优化器 step 的循环，自身或通过项目内的函数把被训练的模型切到 `eval()`，而循环及其调用的函数"
        "都没有 `train()` 时报告。\n\n"
        "- 在循环之前、或在训练函数开头调用 `eval()` 是有意为之（固定统计量），不报告；评估后立即退出循环也不报告。\n"
        "- 模型被交给看不到源码的函数（其中可能调用 `train()`）、或不是被训练的模型（教师模型、指标）时不报告。\n"
        "- 没有 dropout 和 batch norm 的模型不受影响。",
    ),
    bad="""\
import torch

def fit(model, loader, valid, optimizer, epochs):
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in valid:
                model(x, y)
""",
    good="""\
@@ -4 +3,0 @@
-    model.train()
@@ -5,0 +5 @@
+        model.train()
""",
    words=(
        "backward",
        "eval",
        "evaluate",
        "validate",
        "validation",
        "val",
        "test",
        "train_one_epoch",
    ),
)


_TRAINING_NAMES = pattern(r"(?:backward|step|train|fit|optimi[sz]e|update)\w*\(", re.I)
_TRAINING = (Effect.BACKWARD, Effect.STEP)


class Row(NamedTuple):
    """A call in a loop, and what it does."""

    call: ast.Call
    does: Summary


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    told: set[str] = set()
    if scene.is_test:
        return
    for loop in scene.all(*LOOPS):
        if loops_around(scene, loop) or not _sounds_like_training(scene, loop):
            continue
        rows = [Row(call, _does(scene, call)) for call in calls_below(loop)]
        if not any(row.does.has(effect) for row in rows for effect in _TRAINING):
            continue
        for row in rows:
            model = _switched(row.does)
            if model and model not in told and _stays(scene, row, model, rows):
                told.add(model)
                by_mode = depends_on_mode(scene, _as_given(scene, row.call, model, rows))
                if by_mode or (by_mode is None and _is_put_into_training(scene, model)):
                    # without dropout and batch norm both modes are one
                    yield RULE.at(row.call, model=model, severity=None if by_mode else MEDIUM)


def _is_put_into_training(scene: Scene, model: str) -> bool:
    """Whether a model whose making is not to be seen is one that trains: the file says train() or
    parameters() of it, or of no model at all. Beside models that train, one that is only ever evaluated
    is a frozen part."""
    last = model.rpartition(".")[2]
    said = [
        scene.dotted(scene.receiver(call)).split(".")
        for name in ("train", "parameters", "named_parameters")
        for call in scene.calls.get(name, ())
    ]
    return not said or any(last in chain for chain in said) or _trained_by_callee(scene, model)


def _trained_by_callee(scene: Scene, model: str) -> bool:
    return any(
        summary.has(Effect.TRAIN, model)
        for call in scene.all(ast.Call)
        if any(scene.dotted(item) == model for item in call.args)
        and effect_of(scene, call) is None
        and (summary := summary_at(scene, call)) is not None
    )


def _as_given(scene: Scene, site: ast.Call, model: str, rows: list[Row]) -> ast.expr | None:
    """The model as an expression of the loop: what is called, switched or passed under its name."""
    calls = [site, *(row.call for row in rows)]
    nodes = (node for call in calls for node in scene.inside(call) if isinstance(node, ast.expr))
    return next((node for node in nodes if scene.dotted(node) == model), None)


def _sounds_like_training(scene: Scene, loop: ast.AST) -> bool:
    """Whether names in a loop speak of training: the rest is not worth a look."""
    return _TRAINING_NAMES.search(scene.text(loop)) is not None


def _does(scene: Scene, call: ast.Call) -> Summary:
    own = effect_of(scene, call)
    if own is not None:
        return Summary((Event(own[0], scene.dotted(own[1]), True),))
    return summary_at(scene, call) or Summary((), frozenset(handed(scene, call)))


def _switched(does: Summary) -> str:
    """The model that a call leaves in eval(): neither trained nor put back by the same call."""
    for event in does.events:
        if event.effect is Effect.EVAL and event.subject:
            trained = any(does.has(effect) for effect in _TRAINING)
            if not trained and not does.has(Effect.TRAIN, event.subject):
                return event.subject
    return ""


def _stays(scene: Scene, site: Row, model: str, rows: list[Row]) -> bool:
    """Whether the next round of the loop trains the model in evaluation mode."""
    for loop in loops_around(scene, site.call):
        inside = [row for row in rows if scene.within(row.call, loop)]
        training = [r for r in inside if any(r.does.has(effect) for effect in _TRAINING)]
        if not training:
            continue
        if any(_undoes(row.does, model) for row in inside) or _leaves(scene, site.call, loop):
            return False
        if _earlier(scene, loop, model) or _is_meant(scene, site, training):
            return False
        return _trains(scene, inside, model)
    return False


def _undoes(does: Summary, model: str) -> bool:
    """Whether a call may put the model back, or meant its evaluation mode for training."""
    if does.has(Effect.TRAIN, model) or does.hides(model):
        return True
    return does.has(Effect.EVAL, model) and any(does.has(effect) for effect in _TRAINING)


def _is_meant(scene: Scene, site: Row, training: list[Row]) -> bool:
    """Whether `eval()` stands right before the training batch in one and the same block."""
    statement = scene.statement(site.call)
    if statement is None or effect_of(scene, site.call) is None:
        return False
    block = scene.block_of(statement)
    return before(site.call, training[0].call) and any(
        scene.within(training[0].call, item) for item in block
    )


def _leaves(scene: Scene, site: ast.Call, loop: ast.AST) -> bool:
    """Whether the loop ends right after the evaluation."""
    statement: ast.AST | None = scene.statement(site)
    while isinstance(statement, ast.stmt) and statement is not loop:
        if isinstance(scene.block_of(statement)[-1], (ast.Break, ast.Return, ast.Raise)):
            return True
        statement = scene.parent(statement)
    return False


def _trains(scene: Scene, rows: list[Row], model: str) -> bool:
    """Whether the loop runs the model with gradients, or hands it to what trains."""
    for row in rows:
        if scene.dotted(row.call.func) == model:
            if not scene.lexical_region(row.call).without_grad:
                return True
        if effect_of(scene, row.call) is None and any(row.does.has(e) for e in _TRAINING):
            given = [*row.call.args, *(keyword.value for keyword in row.call.keywords)]
            if any(scene.dotted(item) == model for item in given) or model.startswith("self."):
                return True
    return False


def _earlier(scene: Scene, loop: ast.AST, model: str) -> bool:
    """Whether the model is put into eval() before the loop as well: then it is meant."""
    return any(
        scene.dotted(scene.receiver(other)) == model
        and same_scope(scene, other, loop)
        and before(other, loop)
        for other in scene.calls.get("eval", ())
    )
