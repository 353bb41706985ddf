"""Every parameter of the trained model gets a gradient and has an optimizer."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

from torch import nn

from torchstone.conductor.probes.checks._scopes import training_calls
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import OptimizerStep, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, called, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import NOWHERE, Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR108", "parameter-never-trained", Severity.HIGH, "wrong result",
    Text("a parameter of the trained model never gets a gradient or has no optimizer",
         "被训练模型的某个参数得不到梯度，或不属于任何优化器"),
    Text("it keeps its first value: its part of the model does not learn", "它保持初始值：模型的这一部分没有学习"),
    Text("use it in the forward pass without detach(), and hand it to the optimizer; or freeze it",
         "在前向中使用它且不要 detach()，并交给优化器；或将其冻结"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    steps = list(run.of(OptimizerStep))
    trained = {call.module for call in training_calls(run)}
    modules = [module for module in run.top_modules() if id(module) in trained]
    if len(steps) < 2 or not modules:
        return
    run.asks(RULE)
    with_gradient = {item for step in steps for item in step.with_gradient}
    owned = with_gradient | {item for step in steps for item in step.without_gradient}
    told: set[tuple[str, str]] = set()
    for model in modules:
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad or id(parameter) in with_gradient:
                continue
            if _siblings_learn(model, name, with_gradient):
                continue
            lonely = id(parameter) not in owned
            place = (
                run.optimizer_places[steps[-1].optimizer] if lonely else _place_of(run, model, name)
            )
            key = (place.path, f"{place.line}{lonely}")
            if place and key not in told:
                told.add(key)
                owner = run.made_at.get(id(model), NOWHERE) if lonely else NOWHERE
                yield _shown(run, name, place, lonely, len(steps), (owner, type(model).__name__))


def _siblings_learn(model: nn.Module, name: str, known: set[int]) -> bool:
    """One of many alike, such as an expert that got no token in these steps."""
    pattern = re.compile(re.sub(r"\\\.\d+", r"\\.\\d+", re.escape(name)) + "$")
    return any(
        other != name and pattern.match(other) and id(item) in known
        for other, item in model.named_parameters()
    )


def _place_of(run: Recording, model: nn.Module, name: str) -> Place:
    """The line that uses the parameter, or else the one that makes it, in the project's class that owns it."""
    parts = name.split(".")
    for count in range(len(parts) - 1, -1, -1):
        owner = model.get_submodule(".".join(parts[:count]))
        found = _line_in(run, type(owner), parts[count])
        if found:
            return found
    return Place("", 0)


def _line_in(run: Recording, kind: type, attribute: str) -> Place:
    try:
        path = inspect.getsourcefile(kind) or ""
        lines, first = inspect.getsourcelines(kind)
    except (OSError, TypeError):
        return Place("", 0)
    root = f"{run.root.resolve()}/"
    if not path.startswith(root):
        return Place("", 0)
    tree = ast.parse(inspect.cleandoc("".join(lines)) if lines[0][:1].isspace() else "".join(lines))
    for method in ("forward", "__init__"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == method:
                for item in ast.walk(node):
                    if isinstance(item, ast.Attribute) and item.attr == attribute:
                        return Place(
                            path.removeprefix(root),
                            first + item.lineno - 1,
                            f"{kind.__qualname__}.{method}",
                        )
    return Place("", 0)


def _shown(
    run: Recording, name: str, place: Place, lonely: bool, steps: int, made: tuple[Place, str]
) -> Shown:
    what = (
        Text("{name} is in no optimizer", "{name} 不属于任何优化器") if lonely
        else Text("{name} got no gradient in {steps} steps", "{name} 在 {steps} 步中没有得到梯度")
    )  # fmt: skip
    return Shown(RULE, place, what, {"name": name, "steps": str(steps)},
                 (number("optimizer steps seen", "观察的更新次数", steps, "", IN_THE_RUN),),
                 _fixes(run, place, made) if lonely else ())  # fmt: skip


def _fixes(run: Recording, place: Place, made: tuple[Place, str]) -> tuple[Fix, ...]:
    def with_model(file: SourceFile, at: Place) -> Iterator[Fix]:
        yield from _with_model(file, at, *made)

    return offered(run.root, place, _all_parameters, with_model)


def _with_model(file: SourceFile, place: Place, made_at: Place, kind: str) -> Iterator[Fix]:
    """`SGD(params)` becomes `SGD([*params, *model.parameters()])`, where the model has a name there."""
    name = _name_given(file, made_at, kind) if made_at.path == place.path else ""
    same_scope = file.function(made_at.line) is file.function(place.line)
    statement = file.statement(place.line)
    calls = (
        [node for node in ast.walk(statement) if isinstance(node, ast.Call)] if statement else []
    )
    first = calls[0].args[0] if calls and calls[0].args else None
    if not name or not same_scope or first is None or isinstance(first, ast.List):
        return
    text = f"[*{file.source(first)}, *{name}.parameters()]"
    yield fix(
        [file.replace(first, text)],
        "give the optimizer its parameters too",
        "将其参数一并交给优化器",
    )


def _name_given(file: SourceFile, made_at: Place, kind: str) -> str:
    """The name to which the line that makes a model assigns it."""
    statement = file.statement(made_at.line)
    if not isinstance(statement, ast.Assign):
        return ""
    target, value = statement.targets[0], statement.value
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    for one, made in zip(targets, values, strict=False):
        if any(isinstance(node, ast.Call) and called(node) == kind for node in ast.walk(made)):
            return file.source(one)
    return ""


def _all_parameters(file: SourceFile, place: Place) -> Iterator[Fix]:
    """`model.part.parameters()` becomes `model.parameters()`."""
    for call in file.calls(place.line, "parameters"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(owner, ast.Attribute):
            yield fix([file.replace(owner, file.source(owner.value))],
                      "give the optimizer all parameters", "将全部参数交给优化器")  # fmt: skip
