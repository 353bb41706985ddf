"""A model from what the user calls it on the command line.

| form | what it means |
|---|---|
| `package.module:build`, `path/to/file.py:build` | a model, a class or a function that needs no arguments |
| `path/to/file.py` | the one model of a file |
| `hf:llama`, `hf:LlamaForCausalLM`, `hf:path/to/config.json` | transformers, from a configuration alone |
| `timm:resnet50` | timm |

Naming a target of the user's own imports and runs that code. Models are built on the meta device
where they allow it, so that their size does not matter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import InputError, UsageError
from torchstone.core.text import Message, Text
from torchstone.observe.compat.layers import LossBase, WeightedLossBase
from torchstone.runtime.model_hubs.hub import build_from_hub
from torchstone.runtime.model_hubs.timm_models import prepare_timm
from torchstone.runtime.user_code import (
    attribute,
    describe,
    guarded,
    import_file,
    import_named,
)


@dataclass(frozen=True)
class Target:
    """A model that was built, and what is known about it."""

    name: str
    """As the user wrote it."""
    model: nn.Module
    inputs: Any = None
    """What the user's function returned beside the model: a tensor, a tuple or a dictionary."""
    notes: tuple[Message, ...] = ()
    """What had to be chosen or could not be done as asked."""
    config: Any = None
    """The configuration of a transformers model, the settings of a timm model, or None."""


def build_target(name: str) -> Target:
    """The model that a target names."""
    text = name.strip()
    kind, colon, rest = text.partition(":")
    if colon and kind == "hf":
        built = build_from_hub(rest)
        return Target(text, built.model, None, built.notes, built.config)
    if colon and kind == "timm":
        build, settings = prepare_timm(rest)
        model, inputs, notes = _called(build, text)
        return Target(text, model, inputs, notes, settings)
    if text.endswith(".py"):
        return _from_script(text)
    source, colon, path = text.rpartition(":")
    if not colon or not source or not _dotted(path):
        raise UsageError(
            "target",
            repr(name[:100]),
            Text(
                "package.module:build, file.py:build, file.py, hf:model_type or timm:name",
                "package.module:build、file.py:build、file.py、hf:model_type 或 timm:name",
            ),
            Text(
                "name a model, a class, or a function that returns a model",
                "请指定一个模型、类或返回模型的函数",
            ),
        )
    value = attribute(import_named(source), path, text)
    model, inputs, notes = _model_of(value, text)
    return Target(text, model, inputs, notes)


def _dotted(path: str) -> bool:
    return all(part.isidentifier() for part in path.split("."))


Made = tuple[nn.Module, Any, tuple[Message, ...]]


def _model_of(value: Any, name: str) -> Made:
    """A model as it is; a class or a function is called."""
    if is_model(value):
        return value, None, ()
    if not callable(value):
        raise _no_model(name, f"a {type(value).__name__}")
    missing = _required(value, name)
    if missing:
        raise InputError(
            name,
            f"something that needs {', '.join(missing)}",
            Text("a class or a function that needs no arguments", "不需要参数的类或函数"),
            Text(
                "write a function that builds it (`def build(): return Net(…)`) and name that",
                "请编写构建函数（`def build(): return Net(…)`）并指定它",
            ),
        )
    return _called(value, name)


def is_model(value: Any) -> bool:
    """Is it really a module? Asked of its type: an object may lie about its class."""
    return issubclass(type(value), nn.Module)


def _required(value: Callable[..., Any], name: str) -> list[str]:
    """Arguments without which it cannot be called."""
    with guarded(name):
        try:
            parameters = inspect.signature(value).parameters.values()
        except (TypeError, ValueError):
            return []  # some things written in C do not say; the call will tell
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        item.name
        for item in parameters
        if item.default is inspect.Parameter.empty and item.kind not in optional
    ]


def _called(build: Callable[[], Any], name: str) -> Made:
    """What a function or class gives, on the meta device if it can be."""
    notes: tuple[Message, ...] = ()
    with guarded(name):
        try:
            with torch.device("meta"):
                made = build()
        except Exception as error:
            notes = (_on_cpu(name, error),)
            with torch.device("cpu"):
                made = build()
    if is_model(made):
        return made, None, notes
    if isinstance(made, (tuple, list)) and len(made) == 2 and is_model(made[0]):
        return made[0], made[1], notes
    raise _no_model(name, f"a function that returned a {type(made).__name__}")


def _on_cpu(name: str, error: Exception) -> Message:
    return Message(
        "built-on-cpu",
        Text(
            "{name} cannot be built on the meta device ({error}); it was built in memory on the CPU",
            "{name} 无法在 meta 设备上构建（{error}）；已改在 CPU 内存中构建",
        ),
        {"name": name, "error": describe(error)},
    )


def _no_model(name: str, given: str) -> InputError:
    return InputError(
        name,
        given,
        Text(
            "a torch.nn.Module, or a function that returns one (alone or with its inputs)",
            "torch.nn.Module，或返回它（可同时返回输入）的函数",
        ),
        Text("name another attribute of the module", "请指定该模块中的其他名称"),
    )


def _from_script(text: str) -> Target:
    """The one model of a file: an object, or else a class that needs no arguments."""
    module = import_file(Path(text))
    found = instances(module) or classes(module, text)
    if len(found) == 1:
        (name,) = found
        model, inputs, notes = _model_of(found[name], f"{text}:{name}")
        return Target(text, model, inputs, notes)
    if found:
        choices = ", ".join(f"{text}:{name}" for name in found)
        raise UsageError(
            text,
            f"{len(found)} models",
            Text("a file with one model", "只含一个模型的文件"),
            Text(f"name one of them: {choices}", f"请指定其中之一：{choices}"),
        )
    raise InputError(
        text,
        "no model that could be built without arguments",
        Text("a torch.nn.Module, or a class of one", "torch.nn.Module 或其类"),
        Text(
            f"write a function that builds it and name that: {text}:build",
            f"请编写构建函数并指定它：{text}:build",
        ),
    )


def instances(module: ModuleType) -> dict[str, nn.Module]:
    """The models that a file makes: no losses, and no parts of other models."""
    made: dict[str, nn.Module] = {}
    for name, value in vars(module).items():
        known = any(value is other for other in made.values())
        if is_model(value) and not known and not isinstance(value, (LossBase, WeightedLossBase)):
            made[name] = value
    parts = {id(part) for model in made.values() for part in list(model.modules())[1:]}
    return {name: value for name, value in made.items() if id(value) not in parts}


def classes(module: ModuleType, what: str) -> dict[str, type[nn.Module]]:
    """The classes of models that a file defines and that need no arguments."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and value.__module__ == module.__name__
        and not _required(value, what)
    }
