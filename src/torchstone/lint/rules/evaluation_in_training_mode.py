"""An evaluation on a model that nobody put into eval()."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.summary import summary_of, summary_within
from torchstone.lint.knowledge.flow import callers, made, own_nodes, passed
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Function, Scene

RULE = Rule(
    "TS229",
    "evaluation-in-training-mode",
    group="correctness",
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
        "caller in the file puts the model into `eval()`.\n\n"
        "- Said only where the model's making or all callers are in the file; a model that comes "
        "from elsewhere may be in evaluation mode already, as those of `from_pretrained` are.\n"
        "- Quiet for models that are handed to code that cannot be read, for methods that a "
        "framework calls, and in files that say `eval()` of the whole object (`self.eval()`).\n"
        "- Harmless for a model without dropout and batch norm.",
        zh="当一个名字表明用于评估、测试、预测或生成的函数（在 `no_grad` 或 `inference_mode` 下）运行模型，而它自身、"
        "它调用的函数以及本文件中的调用者都没有把模型切到 `eval()` 时报告。\n\n"
        "- 仅当模型的构造或所有调用者都在本文件中才报告；来自别处的模型可能已经处于评估模式，例如 `from_pretrained` "
        "得到的模型。\n"
        "- 模型被交给看不到源码的代码、由框架调用的方法，以及对整个对象调用 `eval()`（`self.eval()`）的文件不报告。\n"
        "- 没有 dropout 和 batch norm 的模型不受影响。",
    ),
    bad=(
        """\
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
        """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))

def predict(path, x):
    model = Net()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    with torch.no_grad():
        return model(x)
""",
    ),
    good=(
        """\
import torch

@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x).argmax(-1) == y).sum()
    model.train()
    return right

def main(model, train_loader, valid, optimizer):
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        print(evaluate(model, valid))
""",
        """\
import torch

@torch.no_grad()
def evaluate(model, loader):
    return sum(model(x) for x in loader)

def main(model, valid):
    model.eval()
    print(evaluate(model, valid))
""",
        """\
import torch

@torch.no_grad()
def evaluate(model, loader):
    return sum(model(x) for x in loader)
""",
        """\
import torch
from transformers import AutoModel

def predict(x):
    model = AutoModel.from_pretrained("bert")
    with torch.no_grad():
        return model(x)
""",
        """\
import torch
from switches import eval_mode

@torch.no_grad()
def evaluate(model, loader):
    with eval_mode(model):
        return sum(model(x) for x in loader)

def main(model, valid):
    print(evaluate(model, valid))
""",
    ),
    words=("no_grad", "inference_mode"),
)
_EVALUATES = pattern(
    r"eval|valid|(?:^|_)test(?:$|_)|infer|predict|(?:^|_)generate|accuracy|metric|get_acc", re.I
)
_TRAINS = pattern(r"train|update|step$|adapt", re.I)
_ON_PURPOSE = pattern(r"(?:^|_)(?:g_?ema|ema|generator|netg|g|vae|teacher)$", re.I)
_EVALUATED = frozenset(("from_pretrained", "load", "jit", "export", "create_model_and_transforms"))
_CALLERS = 2  # callers of callers; an entry point is rarely further away


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    functions = [*scene.all(ast.FunctionDef)]
    for function in functions:
        if not _EVALUATES.search(function.name) or _TRAINS.search(function.name):
            continue
        call = _forward(scene, function)
        if call is None:
            continue
        model = scene.dotted(call.func)
        does = summary_of(scene, function)
        if does.has(Effect.EVAL) or does.has(Effect.TRAIN) or does.hides(model):
            continue
        if _is_known(scene, function, call) and not _eval_of_all(scene):
            yield RULE.at(call, call=scene.brief(call), model=model)


def _forward(scene: Scene, function: Function) -> ast.Call | None:
    """The first call of a model without gradients in a function."""
    found = [
        node
        for node in own_nodes(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and not _ON_PURPOSE.search(node.func.id)
        and scene.is_model(node.func)
        and scene.lexical_region(node).without_grad
    ]
    return min(found, key=lambda node: (node.lineno, node.col_offset), default=None)


def _eval_of_all(scene: Scene) -> bool:
    """Whether the file switches whole objects, or models that it gets from a loop."""
    return any(
        scene.dotted(scene.receiver(call)) in ("", "self") for call in scene.calls.get("eval", ())
    )


def _is_known(scene: Scene, function: Function, call: ast.Call) -> bool:
    """Whether the model is plainly in training mode: made here, or given by callers that are all
    to be seen and do not switch it."""
    assert isinstance(call.func, ast.Name)
    rows = scene.bindings(call.func)
    if rows and rows[0].how == "parameter":
        return _from_callers(scene, function, call.func.id, _CALLERS)
    source = made(scene, call.func)
    if not isinstance(source, ast.Call) or scene.scope(source) is not scene.scope(call):
        return False
    return _in_training_mode(scene, source)


def _in_training_mode(scene: Scene, source: ast.Call) -> bool:
    """Whether a call makes a model of the project, of torch or of torchvision."""
    if scene.last_name(source.func) in _EVALUATED:
        return False
    full = scene.qualified(source.func)
    if full.startswith(("torchvision.models.", "timm.create_model")):
        return True
    found = scene.project.class_named(scene, source.func, full)
    return found is not None and found[0].is_module_class(found[1])


def _from_callers(scene: Scene, function: Function, name: str, depth: int) -> bool:
    """Whether some caller hands over a model that it trains, and none switches it before."""
    sites = callers(scene, function)
    if not sites or isinstance(scene.parent(function), ast.ClassDef):
        return False
    known = False
    for site in sites:
        given = scene.dotted(passed(scene, site, function, name))
        around = scene.function(site) or scene.root
        does = summary_within(scene, around)
        if not given or does.has(Effect.EVAL, given) or _hidden(scene, site, given):
            return False
        if does.has(Effect.BACKWARD) or does.has(Effect.STEP):
            known = True
        elif isinstance(source := made(scene, passed(scene, site, function, name)), ast.Call):
            known = known or _in_training_mode(scene, source)
        elif depth and (outer := scene.function(site)) is not None:
            known = known or _from_callers(scene, outer, given, depth - 1)
    return known


def _hidden(scene: Scene, site: ast.Call, model: str) -> bool:
    """Whether the model passed through something before that is named after evaluation."""
    del site
    return any(
        re.search("eval|infer|freeze", scene.last_name(call.func), re.I) is not None
        and any(scene.dotted(item) == model for item in call.args)
        and scene.lexical_region(call).autocast is None
        and isinstance(scene.parent(call), (ast.Assign, ast.withitem))
        and not _returns_metrics(scene, call)
        for name in scene.calls
        if re.search("eval|infer|freeze", name, re.I)
        for call in scene.calls[name]
    )


def _returns_metrics(scene: Scene, call: ast.Call) -> bool:
    """Whether the answer is kept under another name than a model's."""
    up = scene.parent(call)
    return isinstance(up, ast.Assign) and not any(scene.is_model(t) for t in up.targets)
