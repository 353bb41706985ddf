"""A checkpoint that a run resumes from holds everything that has a state."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording, Save
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import Function, SourceFile, called, fix, parsed
from torchstone.core.finding import Severity
from torchstone.core.fix import Edit, Fix
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR107", "checkpoint-lacks-state", Severity.MEDIUM, "wrong result",
    Text("a checkpoint to resume from lacks state", "用于恢复训练的检查点缺少状态"),
    Text("a resumed run starts the missing part anew: momentum, schedule or loss scale jump",
         "恢复后的运行会重新初始化缺失的部分：动量、学习率或损失缩放会突变"),
    Text("save the state_dict() of every part and load it where the run resumes",
         "保存每个部分的 state_dict()，并在恢复处加载"),
)  # fmt: skip
_ZH = {"optimizer": "优化器", "scheduler": "调度器", "scaler": "GradScaler"}


def check(run: Recording) -> Iterator[Shown]:
    needed = {name for name, known in (("optimizer", run.optimizers), ("scheduler", run.schedulers),
                                       ("scaler", run.scalers)) if known}  # fmt: skip
    for save in run.of(Save):
        resumes = save.kinds & {"optimizer", "scheduler", "scaler", "counter"}
        missing = sorted(needed - save.kinds)
        if "model" in save.kinds and resumes:
            run.asks(RULE)
        if "model" not in save.kinds or not resumes or not missing:
            continue
        yield Shown(
            RULE, save.place,
            Text("the checkpoint holds {has} but not the state of the {en}", "检查点含有 {has}，但没有{zh}的状态"),
            {"has": ", ".join(sorted(save.keys)) or "the model", "en": ", ".join(missing),
             "zh": "、".join(_ZH[name] for name in missing)},
            (number("missing states", "缺失的状态", len(missing), "", IN_THE_RUN),),
            tuple(_add(run, save, missing)),
        )  # fmt: skip
        return


def _add(run: Recording, save: Save, missing: list[str]) -> Iterator[Fix]:
    """Keys beside the last one of the saved dictionary, for what the function knows by name."""
    file = parsed(run.root, save.place)
    names = dict(save.names)
    known = [kind for kind in missing if kind in names]
    literal = _dictionary(file, save.place.line) if file else None
    if file is None or literal is None or not known or not literal.values:
        return
    last = literal.values[-1]
    depth = file.indent(last.lineno)
    several = last.lineno != literal.lineno
    joint = f",\n{depth}" if several else ", "
    text = file.source(last) + "".join(
        f'{joint}"{kind}": {names[kind]}.state_dict()' for kind in known
    )
    edits = [file.replace(last, text), *_restore(file, {kind: names[kind] for kind in known})]
    if len(edits) > 1:
        yield fix(edits, "save and load the missing states too", "一并保存并加载缺失的状态")
    else:
        yield fix(edits, "save the missing states too", "一并保存缺失的状态")


def _restore(file: SourceFile, missing: Mapping[str, str]) -> Iterator[Edit]:
    """The states beside the last one that a function of the same file loads from a dictionary."""
    for function in ast.walk(file.tree):
        if not isinstance(function, Function):
            continue
        loads = [item for item in map(_loaded, ast.walk(function)) if item is not None]
        if not loads:
            continue
        last = max(loads, key=lambda item: item.statement.lineno)
        known = {item.arg for item in ast.walk(function.args) if isinstance(item, ast.arg)}
        for kind, name in missing.items():
            if name in known and kind not in {item.key for item in loads}:
                line = f'{name}.load_state_dict({last.state}["{kind}"])'
                yield file.insert_after(last.statement, line)


@dataclass(frozen=True, slots=True)
class _Load:
    """`part.load_state_dict(state["key"])`."""

    statement: ast.Expr
    state: str
    key: str


def _loaded(node: ast.AST) -> _Load | None:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return None
    call = node.value
    given = call.args[0] if len(call.args) == 1 else None
    if called(call) != "load_state_dict" or not isinstance(given, ast.Subscript):
        return None
    if not (isinstance(given.value, ast.Name) and isinstance(given.slice, ast.Constant)):
        return None
    return _Load(node, given.value.id, str(given.slice.value))


def _dictionary(file: SourceFile, line: int) -> ast.Dict | None:
    """The dictionary that is saved: given in the call, or the last one assigned to its name."""
    for call in file.calls(line, "save"):
        given = call.args[0] if call.args else None
        if isinstance(given, ast.Dict):
            return given
        if isinstance(given, ast.Name):
            found = [node.value for node in ast.walk(file.function(line) or file.tree)
                     if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
                     and any(isinstance(t, ast.Name) and t.id == given.id for t in node.targets)]  # fmt: skip
            return found[-1] if found else None
    return None
