"""What a checkpoint holds is read back: saved, changed, loaded, it is as it was when it was saved."""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.observe.compat.trees import tree_flatten

READ_BACK = ProbeRule(
    "EX118",
    "checkpoint-not-read-back",
    Severity.HIGH,
    "wrong result",
    Text("state that a checkpoint holds is not restored from it", "检查点中保存的状态没有被恢复"),
    Text(
        "a resumed run goes on with a fresh state: the schedule, the momentum or the scale starts again",
        "恢复训练后使用的是全新状态：学习率计划、动量或缩放从头开始",
    ),
    Text("load the state that was saved", "请加载已保存的状态"),
)
RULES = (READ_BACK,)
_PATH_WORDS = ("path", "file", "ckpt", "checkpoint", "name", "resume", "save", "load", "dir")


def examine(subject: Subject) -> Examined:
    shown: list[Shown] = []
    decided = False
    for call in subject.run.calls:
        if call.number or not _mentions(call.function(), "torch.save("):
            continue
        for loader in _loaders(subject.run.root, call):
            lost = _round_trip(subject, call, loader)
            if lost is None:
                continue
            decided = True
            shown += [_shown(subject.run.root, loader, name) for name in lost]
    return Examined(tuple(shown), decided=True) if decided else NOTHING_TO_LOOK_AT


def _mentions(function: Callable[..., Any] | None, words: str) -> bool:
    try:
        return function is not None and words in inspect.getsource(function)
    except (OSError, TypeError):
        return False


def _loaders(root: Path, call: Call) -> Iterator[types.FunctionType]:
    """Functions of the project that read a file of torch, and get what the saving one got."""
    owner = call.arguments.get("self")
    modules = [
        module for module in tuple(sys.modules.values())
        if str(getattr(module, "__file__", None) or "").startswith(f"{root}/")
    ]  # fmt: skip
    found: dict[int, types.FunctionType] = {}
    saver = call.function()
    # the script itself is in no table of modules any more; its functions still know their names
    names = [saver.__globals__] if isinstance(saver, types.FunctionType) else []
    for space in (*names, *map(vars, modules)) if owner is None else ():
        for item in tuple(space.values()):
            own = isinstance(item, types.FunctionType)
            if own and item.__code__.co_filename.startswith(f"{root}/"):
                found[id(item)] = item
    for item in vars(type(owner)).values() if owner is not None else ():
        if isinstance(item, types.FunctionType):
            found[id(item)] = item
    yield from (item for item in found.values() if _mentions(item, "torch.load("))


def _round_trip(subject: Subject, call: Call, loader: types.FunctionType) -> list[str] | None:
    """Names of states that the file holds and the loader leaves alone; None where it cannot be asked."""
    given = call.copy()
    if given is None:
        return None
    arguments = dict(given)
    with tempfile.TemporaryDirectory(prefix="round-trip-") as folder:
        path = _put_path(arguments, folder)
        if not path:
            return None
        done = subject.replay(call, arguments)
        files = [item for item in Path(folder).rglob("*") if item.is_file()]
        if done.error or done.trained or len(files) != 1:
            return None
        states = dict(_states(arguments))
        before = {name: copy.deepcopy(item.state_dict()) for name, item in states.items()}
        held = torch.load(files[0], map_location="cpu", weights_only=False)
        saved = {name for name, state in before.items() if _holds(held, state)}
        moved = {name for name, item in states.items() if _move(item)}
        passed = _arguments_of(loader, arguments, files[0])
        if passed is None:
            return None
        try:
            loader(**passed)
        except (Exception, SystemExit):  # it wants something else: nothing is known
            return None
    # what the loader is given: by name, or as an attribute of the object it belongs to
    reached = {name for name in states if name.partition(".")[0] in passed}
    asked = sorted(moved & saved & reached)
    if not asked:
        return None
    return [name for name in asked if not _equal(states[name].state_dict(), before[name])]


def _states(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in arguments.items():
        if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
            yield name, value
        elif name == "self":
            for inner, item in vars(value).items():
                if hasattr(item, "state_dict") and hasattr(item, "load_state_dict"):
                    yield f"self.{inner}", item


def _put_path(arguments: dict[str, Any], folder: str) -> str:
    """The name of the argument that says where to write; it is changed to our folder."""
    for name, value in arguments.items():
        if isinstance(value, str | Path) and any(word in name.lower() for word in _PATH_WORDS):
            is_file = "." in Path(value).name
            target = Path(folder, Path(value).name) if is_file else Path(folder)
            arguments[name] = type(value)(str(target)) if isinstance(value, str) else target
            return name
    return ""


def _arguments_of(
    loader: types.FunctionType, arguments: Mapping[str, Any], file: Path
) -> dict[str, Any] | None:
    passed: dict[str, Any] = {}
    for name, item in inspect.signature(loader).parameters.items():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            continue
        if name in arguments and not isinstance(arguments[name], str | Path):
            passed[name] = arguments[name]
        elif any(word in name.lower() for word in _PATH_WORDS) and item.default in (
            item.empty,
            None,
        ):
            passed[name] = file if isinstance(arguments.get(name), Path) else str(file)
        elif "device" in name or "location" in name:
            passed[name] = torch.device("cpu")
        elif item.default is item.empty:
            return None
    return passed


def _move(item: Any) -> bool:
    """Change a state so that loading is seen; False where it has nothing to change."""
    if isinstance(item, nn.Module):
        with torch.no_grad():
            for parameter in item.parameters():
                parameter.add_(1.0)
        return any(True for _ in item.parameters())
    state = copy.deepcopy(item.state_dict())
    changed = _shifted(state)
    try:
        item.load_state_dict(changed)
    except Exception:  # a state that refuses other numbers
        return False
    return not _equal(item.state_dict(), state)


def _shifted(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: item if key in ("params", "foreach", "fused") else _shifted(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_shifted(item) for item in value)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value + 1.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value + 7 if isinstance(value, int) else value * 0.5 + 1e-3
    return value


def _holds(held: Any, state: Any) -> bool:
    """Whether a file holds this state, however deep."""
    if isinstance(held, dict):
        return _equal(held, state) or any(_holds(item, state) for item in held.values())
    return isinstance(held, list | tuple) and any(_holds(item, state) for item in held)


def _equal(one: Any, other: Any) -> bool:
    a, first = tree_flatten(one)
    b, second = tree_flatten(other)
    if first != second:
        return False
    return all(
        torch.equal(x, y) if torch.is_tensor(x) and torch.is_tensor(y) else _same(x, y)
        for x, y in zip(a, b, strict=True)
    )


def _same(x: Any, y: Any) -> bool:
    try:
        return bool(x == y)
    except Exception:  # what cannot be compared is not a reason to accuse
        return True


def _shown(root: Path, loader: types.FunctionType, name: str) -> Shown:
    code = loader.__code__
    path = code.co_filename.removeprefix(f"{root}/")
    return Shown(
        READ_BACK,
        Place(path, _line_of_load(loader), code.co_qualname),
        Text(
            "the checkpoint holds the state of `{name}`, `{function}` is given it and does not restore it",
            "检查点中保存了 `{name}` 的状态，`{function}` 收到该对象却没有恢复它",
        ),
        {"name": name, "function": loader.__name__},
        (number("states not restored", "未恢复的状态", 1, "", ON_A_COPY),),
    )


def _line_of_load(loader: types.FunctionType) -> int:
    """The line that reads the file; the `def` where it is not found."""
    first = loader.__code__.co_firstlineno
    try:
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(loader)))
    except (OSError, TypeError, SyntaxError):
        return first
    lines = [
        node.lineno for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load"
    ]  # fmt: skip
    return first + lines[0] - 1 if lines else first
