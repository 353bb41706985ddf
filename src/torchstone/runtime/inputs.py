"""Inputs for a model: as the user writes them (`8,3,224,224:bf16`), or as the model tells."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import InputError, UsageError
from torchstone.core.text import Message, Text
from torchstone.runtime.model_hubs.guess import guessed_inputs
from torchstone.runtime.model_hubs.hub_inputs import (
    describe_shapes,
    hub_inputs,
    leaves_out_pictures,
    missing_arguments,
)
from torchstone.runtime.sizes import LARGEST, parse_dtype, parse_sizes
from torchstone.runtime.user_code import attribute, guarded, import_named

Inputs = torch.Tensor | tuple[Any, ...] | dict[str, Any]
"""A tensor, positional arguments, or keyword arguments."""

_NAMED = re.compile(r"([^\W\d]\w*)=(.*)", re.DOTALL)
_SHAPE = re.compile(r"[0-9.kmg,\s-]+(:[\w.]+)?", re.IGNORECASE | re.ASCII)
_WORDS = {"true": True, "false": False, "none": None}


def parse_inputs(specs: Sequence[str], model: nn.Module | None = None) -> Inputs:
    """Inputs from texts: a shape with an optional number format (`8,3,224,224:bf16`), named or not
    (`ids=2,128:int64`); `flag=true`; or one `module:function` that returns them.

    Without names the result is a tuple, with names a dictionary. Both together need the `model`,
    whose forward says what the unnamed ones are called.
    """
    if not specs:
        raise UsageError("input", "nothing", _expected(), _todo())
    if len(specs) == 1 and _is_function(specs[0]):
        return inputs_from(specs[0])
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for spec in specs:
        match = _NAMED.fullmatch(spec.strip())
        if match is None:
            positional.append(_tensor(spec.strip(), spec))
        elif match[1] in named:
            raise UsageError(
                f"input {spec}",
                f"{match[1]!r} twice",
                Text("every name once", "每个名称只出现一次"),
                Text("leave one of them out", "请去掉其中一个"),
            )
        else:
            value = match[2].strip()
            word = value.lower()
            named[match[1]] = _WORDS[word] if word in _WORDS else _tensor(value, spec)
    if not named:
        return tuple(positional)
    return {**_bound(positional, named, model), **named}


def inputs_from(spec: str) -> Inputs:
    """Inputs that a function of the user returns: `module:function` or `file.py:function`."""
    source, _, name = spec.strip().rpartition(":")
    function = attribute(import_named(source), name, spec)
    with guarded(spec):
        made = function() if callable(function) else function
    if isinstance(made, Mapping) and all(isinstance(key, str) for key in made):
        return dict(made)
    if isinstance(made, (tuple, list)):
        return tuple(made)
    if isinstance(made, torch.Tensor):
        return made
    raise InputError(
        spec,
        f"a {type(made).__name__}",
        Text("a tensor, a tuple or a dictionary of them", "张量，或由张量组成的元组或字典"),
        Text("let the function return the model's inputs", "请让该函数返回模型的输入"),
    )


def default_inputs(
    model: nn.Module,
    config: Any = None,
    batch: int = 1,
    seq: int | None = None,
    train: bool = False,
) -> Inputs:
    """Inputs that suit the model: as its configuration tells (transformers), as timm tells, or as
    its first layer does. With `train` the labels of a transformers model are among them.
    """
    made: Inputs | None
    if hasattr(config, "to_dict") and hasattr(config, "model_type"):
        made = hub_inputs(model, config, batch, seq, train)
    elif isinstance(config, Mapping) and "input_size" in config:
        made = (torch.empty((batch, *config["input_size"]), device="meta"),)
    else:
        made = guessed_inputs(model, batch, seq)
    if made is None:
        names = missing_arguments(model, {})
        shown = ", ".join(names) or "arguments that its layers do not tell"
        raise UsageError(
            type(model).__name__,
            f"no inputs, and its forward takes {shown}",
            Text("inputs for the model", "模型的输入"),
            Text(
                "pass one --input for each: --input 8,3,224,224 or --input name=2,128:int64, "
                "or a function that returns them: --input file.py:function",
                "请逐个传入 --input：--input 8,3,224,224 或 --input name=2,128:int64，"
                "或传入返回输入的函数：--input file.py:function",
            ),
        )
    return made


def notes_on_inputs(model: nn.Module, config: Any, made: Inputs) -> tuple[Message, ...]:
    """What should be said beside figures that come from `default_inputs`."""
    named = made if isinstance(made, dict) else {f"input {i}": item for i, item in enumerate(made)}
    notes = [
        Message(
            "default-inputs",
            Text(
                "no inputs were given; these were made: {shapes}",
                "未给出输入；自动构造的输入为：{shapes}",
            ),
            {"shapes": describe_shapes(named)},
        )
    ]
    if leaves_out_pictures(model, config, named):
        text = Text(
            "how pictures enter the text is not known for this model: it was given text alone",
            "尚不清楚该模型如何将图片放入文本：仅提供了文本输入",
        )
        notes.append(Message("pictures-left-out", text))
    return tuple(notes)


def _is_function(spec: str) -> bool:
    text = spec.strip()
    return ":" in text and not _SHAPE.fullmatch(text) and not _NAMED.fullmatch(text)


def _tensor(text: str, spec: str) -> torch.Tensor:
    where = f"input {spec[:100]}"
    if not _SHAPE.fullmatch(text):
        raise UsageError(where, repr(text[:60]), _expected(), _todo())
    sizes, _, dtype = text.partition(":")
    shape = parse_sizes(sizes, where)
    kind = parse_dtype(dtype, where) if dtype else torch.float32
    if prod(shape) * kind.itemsize > LARGEST:
        raise UsageError(
            where,
            f"{prod(shape):.3g} elements",
            Text("a tensor of less than 2^63 bytes", "小于 2^63 字节的张量"),
            Text("pass smaller sizes", "请使用更小的尺寸"),
        )
    return torch.empty(shape, dtype=kind, device="meta")


def _bound(
    positional: list[Any], named: Mapping[str, Any], model: nn.Module | None
) -> dict[str, Any]:
    """Unnamed inputs with the names that the model's forward gives them."""
    if not positional:
        return {}
    names = [] if model is None else positional_names(model)
    if len(names) < len(positional) or set(names[: len(positional)]) & set(named):
        raise UsageError(
            "input",
            f"{len(positional)} unnamed and {', '.join(named)}",
            Text("names that do not collide", "互不冲突的名称"),
            Text("name all of them: --input x=8,3,224,224", "请全部命名：--input x=8,3,224,224"),
        )
    return dict(zip(names, positional, strict=False))


def positional_names(model: nn.Module) -> list[str]:
    """Names of the arguments that a model's forward takes by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(model.forward).parameters.values()
    return [item.name for item in parameters if item.kind in kinds]


def _expected() -> Text:
    return Text(
        "a shape such as 8,3,224,224:bf16, a named one such as ids=2,128:int64, or module:function",
        "形状（如 8,3,224,224:bf16）、带名称的形状（如 ids=2,128:int64）或 module:function",
    )


def _todo() -> Text:
    return Text("pass --input in one of these forms", "请按其中一种形式传入 --input")
