"""A misspelt name of torch, or of a tensor's method, ends the program with an AttributeError."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from torchstone.core.text import Text
from torchstone.lint.facts.members import is_bound_elsewhere, outline_of
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.knowledge.torch_api import DEPRECATED, PRIVATE, REMOVED
from torchstone.lint.knowledge.torch_names import closest, names_of, neighbour
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS242",
    "misspelt-torch-name",
    severity=MEDIUM,
    highest=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="torch has no `{name}`; `{meant}` is near", zh="torch 没有 `{name}`，相近的是 `{meant}`"
    ),
    why=Text(
        en="the line ends with an AttributeError as soon as it runs",
        zh="执行到这一行时会以 AttributeError 结束",
    ),
    suggest=Text(en="write `{meant}`", zh="写成 `{meant}`"),
    title=Text(
        en="A name of torch or a method of a tensor is misspelt",
        zh="torch 的名字或张量的方法名拼写有误",
    ),
    page=Text(
        en="""\
Names are compared with an index of several releases of torch, 2.0 to 2.13. Reported is a name that none of them has, with the one
that differs from it by one or two letters if there is one. A method is reported when the same value is used as a tensor nearby.

Quiet for names that torch once had (see `removed-function`), for methods that the project defines, and under a
question of version.""",
        zh="""\
名字与 2.0 至 2.13 的多个 torch 版本的索引比较：没有任何版本拥有的名字会被报告，若有只差一两个字母的名字会一并给出。对方法，只有同一个值在附近被当作
张量使用时才报告。

不报告：torch 曾经有过的名字（参见 `removed-function`）；项目自己定义的方法；位于版本判断之下。""",
    ),
    words=("torch",),
    bad="""\
import torch

def run(model, x):
    return torch.nn.parallel.data_psarallel(model, x)
""",
    good="""\
import torch

def run(model, x):
    return torch.nn.parallel.data_parallel(model, x)
""",
)
_SHORT = 5  # shorter names have too many neighbours
_OTHERS = frozenset(
    name for kind in (str, list, dict, set, bytes, int, float, tuple) for name in dir(kind)
)


@RULE.on_file
def check_names(scene: Scene) -> Iterator[Hit]:
    """`torch.nn.parallel.data_psarallel`"""
    roots = {local for local, full in scene.imports.aliases.items() if _is_torch(full)}
    for node in scene.all(ast.Attribute) if roots else ():
        base = node.value
        while isinstance(base, ast.Attribute):
            base = base.value
        if not isinstance(base, ast.Name) or base.id not in roots:
            continue
        full = scene.qualified(node)
        home, _, name = full.rpartition(".")
        known = names_of(home)
        if not known or name in known or len(name) < _SHORT or name.startswith("_"):
            continue
        if home.startswith("torch.backends."):
            continue  # these modules are objects, whose names no index holds
        if full in REMOVED or full in DEPRECATED or full in PRIVATE:
            continue
        if not isinstance(node.ctx, ast.Load) or scene.bindings(base) or guarded(scene, node):
            continue
        meant = neighbour(name, home)
        if meant:
            yield RULE.at(node, name=full, meant=f"{home}.{meant}")
        elif _is_of_indexed_torch(scene) and not is_bound_elsewhere(scene.project, name, False):
            yield RULE.at(node, say=_NEVER, suggest=_OTHER, name=full)


_NEVER = Text(en="no torch from 2.0 on has `{name}`", zh="自 2.0 起的 torch 都没有 `{name}`")
_OTHER = Text(
    en="look the name up in the documentation of torch", zh="请在 torch 文档中查找正确的名字"
)


def _is_of_indexed_torch(scene: Scene) -> bool:
    """Whether the project runs with a release that the index speaks of."""
    oldest = scene.project.torch
    return oldest is None or oldest >= (2, 0) or scene.project.torch_open


def _is_torch(full: str) -> bool:
    return full == "torch" or full.startswith("torch.")


@RULE.on_file
def check_methods(scene: Scene) -> Iterator[Hit]:
    """`target.unsequeeze(1)`"""
    for name, calls in scene.calls.items():
        meant = _method_meant(name)
        if not meant or outline_of(scene.project).functions[name.encode()]:
            continue
        for call in calls:
            receiver = scene.receiver(call)
            if receiver is None or scene.qualified(call.func) or guarded(scene, call):
                continue
            if _is_used_as_tensor(scene, call, scene.dotted(receiver)):
                yield RULE.at(call, name=f"Tensor.{name}", meant=meant)


@cache
def _method_meant(name: str) -> str:
    """The method of a tensor that a name is near to, when no other common class has it."""
    known = names_of("torch.Tensor")
    if len(name) < _SHORT or name in known or name in _OTHERS or name.startswith("_"):
        return ""
    if name in names_of("torch.nn.Module"):
        return ""  # a model that torch is given may look like a tensor
    return closest(name, _methods_with(name[0]))


@cache
def _methods_with(letter: str) -> tuple[str, ...]:
    known = names_of("torch.Tensor")
    return tuple(item for item in known if item[0] == letter and len(item) >= _SHORT)


def _is_used_as_tensor(scene: Scene, call: ast.Call, receiver: str) -> bool:
    """Whether the same name is given to torch, or a method is called that tensors alone have."""
    if not receiver:
        return False
    function = scene.function(call)
    for other in scene.inside(function) if function is not None else ():
        if not isinstance(other, ast.Call) or other is call:
            continue
        if scene.dotted(scene.receiver(other)) == receiver and scene.method(other) in _TENSORS_ONLY:
            return True
        given = scene.qualified(other.func)
        if given.startswith("torch.") and any(scene.dotted(a) == receiver for a in other.args):
            return True
    return False


_TENSORS_ONLY = frozenset(
    "unsqueeze permute contiguous detach cuda backward requires_grad_ masked_fill size numel "
    "expand index_select type_as long scatter_".split()
)
