"""An evaluation on a model that nobody put into eval()."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.makeup import depends_on_mode
from torchstone.lint.facts.returned import maker_of
from torchstone.lint.facts.summary import NOTHING, Summary, calls_below, summary_of, summary_within
from torchstone.lint.knowledge.amp import receivers
from torchstone.lint.knowledge.flow import before, loops_around, made, own_nodes, parameters, passed
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import FUNCTIONS, Function, Scene
from torchstone.sources.targets import method_of, target_of
from torchstone.sources.training import backward_calls, step_calls

RULE = Rule(
    "TS229",
    "evaluation-in-training-mode",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` evaluates a model that nothing here put into eval()",
        zh="`{call}` 在评估，但这里没有任何代码把模型切到 eval()",
    ),
    why=Text(
        en="a model starts in training mode: dropout stays on, and batch norm uses (and updates "
        "itself with) the statistics of the evaluated batch",
        zh="模型默认处于训练模式：dropout 仍然生效，batch norm 使用（并更新）被评估批次的统计量",
    ),
    suggest=Text(
        en="call `{model}.eval()` before, and `{model}.train()` before training goes on",
        zh="在此之前调用 `{model}.eval()`，继续训练之前再调用 `{model}.train()`",
    ),
    title=Text(
        en="An evaluation runs a model that was never put into eval()",
        zh="评估时模型从未切到 eval()",
    ),
    page=Text(
        en="Fires where a function that evaluates, tests, predicts or generates (by its name, under "
        "`no_grad` or `inference_mode`) runs a model, and neither it, nor what it calls, nor any "
        "caller in the project puts the model into `eval()`.\n\n"
        "- Also for a program without any training that loads weights into a model of the project and "
        "runs it without gradients, wherever that stands; only where the model is seen to have dropout or "
        "batch norm.\n"
        "- Also for a loop without gradients, over other data, in the function that trains the model.\n"
        "- Where a function puts one model into `eval()` and runs another, the other is reported when it "
        "is seen to have dropout or batch norm.\n"
        "- Also for `model.generate(…)` or `model.sample(…)` in the loop that trains the model, when "
        "that method runs the model without gradients.\n"
        "- Said only where the model's making or all callers are to be seen; a model that comes "
        "from elsewhere may be in evaluation mode already, as those of `from_pretrained` are.\n"
        "- Quiet for models that are handed to code that cannot be read, for methods that a "
        "framework calls, and in files that say `eval()` of the whole object (`self.eval()`).\n"
        "- Harmless for a model without dropout and batch norm.",
        zh="当一个名字表明用于评估、测试、预测或生成的函数（在 `no_grad` 或 `inference_mode` 下）运行模型，而它自身、"
        "它调用的函数以及项目中的调用者都没有把模型切到 `eval()` 时报告。\n\n"
        "- 不做任何训练的程序若向项目自己的模型加载权重，并在不求梯度的情况下运行，也会报告（仅当看得出模型含有 dropout 或 "
        "batch norm）。\n"
        "- 训练该模型的函数中，对其他数据的不求梯度的循环也检查。\n"
        "- 函数把一个模型切到 `eval()`，却运行另一个模型时，若看得出后者含有 dropout 或 batch norm，也会报告。\n"
        "- 训练循环中的 `model.generate(…)`、`model.sample(…)` 也检查：该方法在不求梯度的情况下运行模型时报告。\n"
        "- 仅当能看到模型的构造或所有调用者时才报告；来自别处的模型可能已经处于评估模式，例如 `from_pretrained` "
        "得到的模型。\n"
        "- 模型被交给看不到源码的代码、由框架调用的方法，以及对整个对象调用 `eval()`（`self.eval()`）的文件不报告。\n"
        "- 没有 dropout 和 batch norm 的模型不受影响。",
    ),
    bad="""\
import torch

@torch.no_grad()
def evaluate(model, loader):
    right = 0
    for x, y in loader:
        right += (model(x).argmax(-1) == y).sum()
    return right

def main(model, train_loader, valid, optimizer):
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        print(evaluate(model, valid))
""",
    good="""\
@@ -4,0 +5 @@
+    model.eval()
@@ -7,0 +9 @@
+    model.train()
""",
    words=("no_grad", "inference_mode", "eval_net", "evaluate", "validate", "test", "predict"),
)
_EVALUATES = pattern(
    r"eval|valid|(?:^|_)test(?:$|_)|infer|predict|(?:^|_)(?:generate|sample|decode|translate|synthesi)|accuracy|metric|get_acc"
    r"|(?:^|_)(?:fid|psnr|ssim|bleu|rouge|wer|cer|ppl|perplexity|miou|auc|f1|recall)(?:$|_)|score",
    re.I,
)
_PLAINLY = pattern(r"^_*(?:eval(?:uate)?|valid(?:ate|ation)?|test)(?:$|_)", re.I)
_PRETRAINED = pattern(r"pretrained|load_plm")
# methods under which models generate and translate; torch's own layers have none of them
_METHODS = frozenset("generate sample inference infer predict synthesize decode translate".split())
_TRAINS = pattern(r"train|update|step$|adapt", re.I)
_MADE_UP = frozenset(f"torch.{name}" for name in "rand randn zeros ones empty full randint".split())
_ON_PURPOSE = pattern(r"(?:^|_)(?:g_?ema|ema|generator|netg|g|vae|teacher)$", re.I)
_EVALUATED = frozenset(("from_pretrained", "load", "jit", "export", "create_model_and_transforms"))
_SWITCHES = pattern(r"eval|infer|freeze", re.I)
_HELD_OUT = pattern(r"val|test|dev(?!ice)|eval|held", re.I)
_CALLERS = 2  # callers of callers; an entry point is rarely further away


class Run(NamedTuple):
    """A call that runs a model, and the model itself."""

    call: ast.Call
    model: ast.expr


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    for function in () if scene.is_test else scene.all(ast.FunctionDef):
        if not _EVALUATES.search(function.name) or _TRAINS.search(function.name):
            continue
        runs = _runs(scene, function)
        does = summary_of(scene, function) if runs else NOTHING
        if does.has(Effect.BACKWARD) or _eval_of_all(scene):
            continue
        for run in runs:
            if _is_left(scene, function, run, does):
                yield _hit(scene, run)
                break


def _hit(scene: Scene, run: Run) -> Hit:
    return RULE.at(run.call, call=scene.brief(run.call), model=scene.dotted(run.model))


def _is_left(scene: Scene, function: Function, run: Run, does: Summary) -> bool:
    """Whether a model runs here in training mode, and the mode changes what it computes."""
    model = scene.dotted(run.model)
    if does.has(Effect.EVAL, model) or does.has(Effect.TRAIN, model) or does.hides(model):
        return False
    by_mode = _depends_on_mode(scene, function, run.model)
    # where another model is switched, this one may be left out on purpose unless it has dropout
    beside = does.has(Effect.EVAL) or does.has(Effect.TRAIN)
    if by_mode is False or (beside and not by_mode):
        return False
    if by_mode is None and (
        _wraps_pretrained(scene, function) or not _is_given(scene, function, run.model)
    ):
        return False
    return _is_known(scene, function, run)


def _depends_on_mode(scene: Scene, function: Function, model: ast.expr) -> bool | None:
    """What the model's making tells, here or where callers make it."""
    if _is_given(scene, function, model):
        given = [
            depends_on_mode(home, passed(home, site, function, scene.dotted(model)))
            for home, site in calls_of(scene, function) or ()
        ]
        return True if any(given) else None if None in given or not given else False
    return depends_on_mode(scene, model)


def _wraps_pretrained(scene: Scene, function: Function) -> bool:
    """Whether a caller's file gets a pretrained network, which comes in evaluation mode, and never says
    train(): what it wraps is still evaluated right."""
    homes = {scene, *(home for home, _ in calls_of(scene, function) or ())}
    return any(
        _PRETRAINED.search(home.source.text) is not None and not home.calls.get("train")
        for home in homes
    )


def _is_given(scene: Scene, function: Function, model: ast.expr) -> bool:
    """Whether a model is what a parameter was given, and nothing else by then."""
    if not isinstance(model, ast.Name) or model.id not in parameters(function):
        return False
    return len(scene.bindings(model)) == 1


@RULE.on_file
def check_inline(scene: Scene) -> Iterator[Hit]:
    """`with torch.no_grad(): for x in val: net(x)` in the function that trains the model"""
    if scene.is_test or _eval_of_all(scene):
        return
    for root in {scene.function(call) or scene.root for call in backward_calls(scene)}:
        if isinstance(root, FUNCTIONS) and _EVALUATES.search(root.name):
            continue
        runs = [run for run in _runs_in(scene, root) if _in_validation(scene, run.call)]
        told: set[str] = set()
        for run in runs:
            name = scene.dotted(run.model)
            if name not in told and _is_trained_beside(scene, root, run):
                told.add(name)
                yield _hit(scene, run)


def _in_validation(scene: Scene, call: ast.Call) -> bool:
    """Whether a call stands in a loop that runs without gradients, whole or by the name of its data."""
    if not scene.lexical_region(call).without_grad:
        return False
    loops = loops_around(scene, call)
    if not loops or not isinstance(loops[0], ast.For):
        return False
    outer = scene.lexical_region(loops[0]).without_grad
    named = any(_HELD_OUT.search(scene.last_name(part)) for part in scene.inside(loops[0].iter))
    return (outer or named) and not any(
        scene.within(other, loops[0]) for other in backward_calls(scene)
    )


def _is_trained_beside(scene: Scene, root: ast.AST, run: Run) -> bool:
    """Whether the function trains the very model, never switches it, and its mode matters."""
    name, does = scene.dotted(run.model), summary_within(scene, root)
    if does.has(Effect.EVAL, name) or does.hides(name) or _switched(scene, name):
        return False
    if _ON_PURPOSE.search(name.rpartition(".")[2]):
        return False
    trained = any(
        scene.dotted(other.model) == name and not scene.lexical_region(other.call).without_grad
        for other in _runs_in(scene, root)
    )
    return trained and depends_on_mode(scene, run.model) is True


@RULE.on_file
def check_script(scene: Scene) -> Iterator[Hit]:
    """`net.load_state_dict(…)` … `with torch.no_grad(): net(x)` in a program that never trains"""
    if scene.is_test or backward_calls(scene) or step_calls(scene) or _eval_of_all(scene):
        return
    if not any(scene.calls.get(name) for name in ("no_grad", "inference_mode", "set_grad_enabled")):
        return
    loads = (call for name in scene.calls if "load" in name for call in scene.calls[name])
    told: set[str] = set()
    for load in sorted(loads, key=lambda call: call.lineno):
        model = scene.receiver(load)
        if model is None or not scene.method(load) or scene.qualified(load.func):
            continue
        run = _run_after(scene, load, model)
        if run is not None and scene.dotted(model) not in told and _stays(scene, run):
            told.add(scene.dotted(model))
            yield _hit(scene, run)


def _run_after(scene: Scene, load: ast.Call, model: ast.expr) -> Run | None:
    """The first run of a model without gradients, in the function that loads its weights."""
    name, home = scene.dotted(model), scene.function(load) or scene.root
    if isinstance(home, FUNCTIONS) and _EVALUATES.search(home.name):
        return None  # judged by its name already
    runs = [
        run
        for run in _runs_in(scene, home)
        if scene.dotted(run.model) == name and before(load, run.call)
    ]
    return next((run for run in runs if scene.lexical_region(run.call).without_grad), None)


def _stays(scene: Scene, run: Run) -> bool:
    """Whether nothing in the program may switch a model that is made where it runs."""
    name = scene.dotted(run.model)
    does = summary_within(scene, scene.function(run.call) or scene.root)
    source = made(scene, run.model)
    return (
        not does.has(Effect.EVAL, name)
        and not does.hides(name)
        and not _switched(scene, name)
        and isinstance(source, ast.Call)
        and _in_training_mode(scene, source)
        and depends_on_mode(scene, run.model) is True
    )


@RULE.on_call("generate", "sample")
def check_method(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`model.generate(x)` in the loop that trains the model, whose own method runs without gradients"""
    model = scene.dotted(scene.receiver(call))
    loops = loops_around(scene, call)
    if not model or not loops or scene.is_test or not scene.is_model(scene.receiver(call)):
        return
    found = target_of(scene, call) or _method_of_made(scene, call)
    owner = found[0].parent(found[1]) if found is not None else None
    if found is None or not isinstance(owner, ast.ClassDef) or not found[0].is_module_class(owner):
        return
    does, around = summary_of(*found), summary_within(scene, scene.function(call) or loops[-1])
    if does.has(Effect.EVAL) or does.has(Effect.TRAIN) or around.has(Effect.EVAL):
        return
    if around.hides(model) or not summary_within(scene, loops[-1]).has(Effect.BACKWARD):
        return
    if _runs_itself(*found):
        yield RULE.at(call, call=scene.brief(call), model=model)


def _method_of_made(scene: Scene, call: ast.Call) -> tuple[Scene, Function] | None:
    """The method of a model that came in as a parameter, when what made it is seen."""
    made_by = maker_of(scene, scene.receiver(call))
    if made_by is None:
        return None
    found = made_by.scene.project.class_named(made_by.scene, made_by.call.func, made_by.name)
    return method_of(found[0], found[1], scene.last_name(call.func)) if found else None


def _runs_itself(scene: Scene, method: Function) -> bool:
    """Whether a method of a module calls the module without gradients."""
    return any(
        isinstance(node, ast.Call)
        and scene.dotted(node.func) in ("self", "self.forward")
        and scene.lexical_region(node).without_grad
        for node in own_nodes(method)
    )


def _runs(scene: Scene, function: Function) -> list[Run]:
    """The first run of each model of a function, without gradients unless its name says enough."""
    plain = bool(_PLAINLY.search(function.name))
    tries = function.name.lstrip("_").startswith("test")  # a module out, unless it is given one
    found: dict[str, Run] = {}
    for run in _runs_in(scene, function):
        named = plain and (not tries or _is_given(scene, function, run.model))
        if named or scene.lexical_region(run.call).without_grad:
            found.setdefault(scene.dotted(run.model), run)
    return [run for name, run in found.items() if not _ON_PURPOSE.search(name.rpartition(".")[2])]


def _runs_in(scene: Scene, root: ast.AST) -> list[Run]:
    """Calls of models, and of the methods that run them, in order."""
    found = []
    for call in calls_below(root):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _METHODS:
            model: ast.expr = func.value
        else:
            model = func
        plain = isinstance(model, ast.Name) or _is_own(scene, model)
        if (
            plain
            and not _is_tried_out(scene, call)
            and (scene.is_model(model) or _is_module(scene, root, model))
        ):
            found.append(Run(call, model))
    return found


def _is_tried_out(scene: Scene, call: ast.Call) -> bool:
    """Whether all that a model is given was made up: `net(torch.randn(4, 3, 256, 256))` asks for shapes."""
    given = [*call.args, *(item.value for item in call.keywords)]
    return bool(given) and all(_is_made_up(scene, item) for item in given)


def _is_made_up(scene: Scene, value: ast.expr) -> bool:
    source = made(scene, value) if isinstance(value, ast.Name) else value
    while isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        if scene.qualified(source.func) in _MADE_UP:
            return True
        source = source.func.value
    return False


def _is_module(scene: Scene, root: ast.AST, model: ast.expr) -> bool:
    """Whether callers pass a module of the project under a name that does not tell."""
    if not isinstance(model, ast.Name) or not isinstance(root, FUNCTIONS):
        return False
    if not _is_given(scene, root, model):
        return False
    for home, site in calls_of(scene, root) or ():
        value = passed(home, site, root, model.id)
        if isinstance(value, (ast.Name, ast.Attribute)) and home.is_model(value):
            return True
        given = maker_of(home, value)
        found = (
            given.scene.project.class_named(given.scene, given.call.func, given.name)
            if given is not None
            else None
        )
        if found is not None and found[0].is_module_class(found[1]):
            return True
    return False


def _is_own(scene: Scene, func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and scene.dotted(func.value) == "self"


def _eval_of_all(scene: Scene) -> bool:
    """Whether the file switches whole objects, or models that it gets from a loop."""
    return not receivers(scene, "eval").isdisjoint(("", "self"))


def _is_known(scene: Scene, function: Function, run: Run) -> bool:
    """Whether the model is plainly in training mode: made here, or given by callers that are all
    to be seen and do not switch it."""
    call, model = run
    if isinstance(model, ast.Attribute):
        return _made_by_class(scene, call, model.attr)
    if isinstance(model, ast.Name):
        if _is_given(scene, function, model):
            return _from_callers(scene, function, model.id, _CALLERS)
    source = made(scene, model)
    if not isinstance(source, ast.Call) or scene.scope(source) is not scene.scope(call):
        return False
    return _in_training_mode(scene, source)


def _made_by_class(scene: Scene, call: ast.Call, name: str) -> bool:
    """Whether an object makes the model for itself and none of its methods switches it."""
    owner = scene.class_of(call)
    if owner is None or scene.is_module_class(owner) or owner.bases:
        return False
    values = scene.attribute_values(owner, name)
    switched = any(
        scene.dotted(scene.receiver(item)).endswith(f".{name}") or scene.within(item, owner)
        for method in ("eval", "train")
        for item in scene.calls.get(method, ())
    )
    return (
        not switched
        and len(values) == 1
        and isinstance(source := _bare(scene, values[0]), ast.Call)
        and _in_training_mode(scene, source)
    )


def _bare(scene: Scene, value: ast.expr) -> ast.expr:
    """A value without the moves behind it: `Net()` of `Net().to(device)`."""
    while isinstance(value, ast.Call) and scene.method(value) in ("to", "cuda", "cpu", "float"):
        value = value.func.value  # type: ignore[attr-defined]
    return value


def _in_training_mode(scene: Scene, source: ast.Call) -> bool:
    """Whether a call makes a model of the project or of torchvision, by itself or in a factory."""
    factory = target_of(scene, source)
    if factory is not None:
        found = maker_of(scene, source)
        return (
            found is not None
            and found.call is not source
            and not summary_of(*factory).has(Effect.EVAL)
            and _in_training_mode(found.scene, found.call)
        )
    if scene.last_name(source.func) in _EVALUATED:
        return False
    full = scene.qualified(source.func)
    if full.startswith(("torchvision.models.", "timm.create_model")):
        return True
    model = scene.project.class_named(scene, source.func, full)
    return (
        model is not None
        and model[0].is_module_class(model[1])
        and not any(
            model[0].last_name(item.func) in ("eval", "train")
            for item in model[0].all(ast.Call)
            if model[0].within(item, model[1])
        )
    )


def _from_callers(scene: Scene, function: Function, name: str, depth: int) -> bool:
    """Whether some caller hands over a model that it trains, and none switches it before."""
    sites = calls_of(scene, function)
    if not sites or isinstance(scene.parent(function), ast.ClassDef):
        return False
    known = False
    for home, site in sites:
        value = passed(home, site, function, name)
        given = home.dotted(value)
        does = summary_within(home, home.function(site) or home.root)
        if not given or does.has(Effect.EVAL, given) or _switched(home, given):
            return False
        source = made(home, value)
        if does.has(Effect.BACKWARD) or does.has(Effect.STEP):
            known = True
        elif isinstance(source, ast.Call):
            known = known or _in_training_mode(home, source)
        elif depth and (outer := home.function(site)) is not None:
            known = known or _from_callers(home, outer, given, depth - 1)
    return known


def _switched(scene: Scene, model: str) -> bool:
    """Whether the file puts the model into a mode somewhere, or hands it to what sounds so."""
    for method in ("eval", "train"):
        for call in scene.calls.get(method, ()):
            if method == "eval" and scene.dotted(scene.receiver(call)) in (
                model,
                f"{model}.module",
            ):
                return True
    return any(
        any(scene.dotted(item) == model for item in call.args)
        and isinstance(scene.parent(call), (ast.Assign, ast.withitem, *FUNCTIONS))
        and not _returns_metrics(scene, call)
        for name in scene.calls
        if _SWITCHES.search(name)
        for call in scene.calls[name]
    )


def _returns_metrics(scene: Scene, call: ast.Call) -> bool:
    """Whether the answer is kept under another name than a model's."""
    up = scene.parent(call)
    return isinstance(up, ast.Assign) and not any(scene.is_model(t) for t in up.targets)
