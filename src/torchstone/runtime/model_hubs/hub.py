"""Models of transformers from a configuration alone: no weights, no network, on the meta device."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from torchstone.core.errors import InputError, TorchstoneError, UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Message, Text
from torchstone.runtime.model_hubs.hub_config import (
    make_config,
    not_built,
    parse_changes,
    read_config,
    transformers,
)
from torchstone.runtime.model_hubs.presets import PRESETS
from torchstone.runtime.model_hubs.published import Published, published_model, published_names
from torchstone.runtime.user_code import describe, guarded

_TASKS = (
    "SEQ_TO_SEQ_CAUSAL_LM",
    "SPEECH_SEQ_2_SEQ",
    "IMAGE_TEXT_TO_TEXT",
    "MASKED_LM",
    "CAUSAL_LM",
    "ZERO_SHOT_IMAGE_CLASSIFICATION",
    "IMAGE_CLASSIFICATION",
    "VIDEO_CLASSIFICATION",
    "CTC",
    "AUDIO_CLASSIFICATION",
    "OBJECT_DETECTION",
    "MASK_GENERATION",
    "DEPTH_ESTIMATION",
)
"""What a model type is most used for, the first that it can do. A type that is an encoder and can
be made a decoder (BERT) is an encoder."""


class HubModel(NamedTuple):
    """A model that was built, its configuration, and what had to be chosen."""

    model: nn.Module
    config: Any
    notes: tuple[Message, ...]


def build_from_hub(spec: str) -> HubModel:
    """A model from `llama-3-8b`, `deepseek_v3`, `LlamaForCausalLM`, `path/to/config.json` or a folder
    with one; `?key=value&part.key=value` changes its configuration."""
    name, _, query = spec.partition("?")
    changes = parse_changes(query, f"hf:{spec}")
    where = f"hf:{name}"
    if not name:
        raise UsageError(
            "hf:",
            "no name",
            Text("a model type, a class or a configuration", "模型类型、类名或配置"),
            Text(
                "write hf:llama or hf:path/to/config.json",
                "例如 hf:llama 或 hf:path/to/config.json",
            ),
        )
    path = Path(name)
    is_file = name.endswith(".json") or path.exists()
    if not is_file and name not in _type_names() and (row := published_model(name)):
        return _from_published(row, changes, where)
    if is_file or "/" in name:
        return _from_file(path, changes, where)
    if name in _type_names():
        return _from_type(_type_names()[name], changes, where)
    return _from_class(name, changes, where)


def _type_names() -> dict[str, str]:
    """Model types as people write them: with dashes or underscores."""
    names = transformers().CONFIG_MAPPING.keys()
    return {spelling: name for name in names for spelling in (name.replace("-", "_"), name)}


def _from_type(model_type: str, changes: dict[str, Any], where: str) -> HubModel:
    config_class = transformers().CONFIG_MAPPING[model_type]
    title, preset = PRESETS.get(model_type, ("", {}))
    config = make_config(config_class, preset, changes, where)
    names = _classes_for(model_type, config)
    if not names:
        raise InputError(
            where,
            f"model type {model_type!r}, which is a part of other models",
            Text("a type that has a model of its own", "自身具有模型的类型"),
            Text("name the class: hf:ClassName", "请指定类名：hf:ClassName"),
        )
    return _first_that_builds(names, config, _preset_note(title, where), where)


def _from_published(row: Published, changes: dict[str, Any], where: str) -> HubModel:
    """By the table of published models, which says so."""
    config_class = transformers().CONFIG_MAPPING[row.type]
    config = make_config(config_class, {"model_type": row.type, **row.config}, changes, where)
    text = Text(
        "{name}: the sizes of {title} come from a table of 2026-11-18; for another version pass "
        "hf:path/to/config.json",
        "{name}：{title} 的尺寸取自 2026-11-18 的内置表；其他版本请传入 hf:path/to/config.json",
    )
    note = Message("published-sizes", text, {"name": where, "title": row.title})
    return _first_that_builds(_classes_for(row.type, config), config, (note,), where)


def _first_that_builds(
    names: list[str], config: Any, notes: tuple[Message, ...], where: str
) -> HubModel:
    """A head may need settings that the default does not have; the model without it is next."""
    failure: TorchstoneError | None = None
    for name in names:
        try:
            return _build(_class(name, where), config, (_chosen(where, name), *notes), where)
        except InputError as error:
            failure = failure or error
    assert failure is not None  # there was at least one name
    raise failure


def _preset_note(title: str, where: str) -> tuple[Message, ...]:
    if not title:
        return ()
    text = Text(
        "{name}: the default configuration of transformers does not build or not run; the "
        "published one of {title} is used",
        "{name}：transformers 的默认配置无法构建或运行，改用 {title} 公开的配置",
    )
    return (Message("published-configuration", text, {"name": where, "title": title}),)


def _chosen(where: str, class_name: str) -> Message:
    return Message(
        "chosen-class",
        Text(
            "{name} was built as {kind}; name another class to choose it: hf:ClassName",
            "{name} 按 {kind} 构建；如需其他类，请写 hf:类名",
        ),
        {"name": where, "kind": class_name},
    )


def _from_class(name: str, changes: dict[str, Any], where: str) -> HubModel:
    known = _type_names()
    cls = _class(name, where) if name.isidentifier() and name[:1].isupper() else None
    config_class = getattr(cls, "config_class", None)
    if cls is None or config_class is None or not issubclass(cls, nn.Module):
        raise unknown(
            where,
            name,
            [item for item in (*published_names(), *known, *_class_names()) if item != name],
            UsageError,
            Text(
                "pass a published model such as llama-3-8b, a model type such as llama, a class such "
                "as LlamaForCausalLM, or the path of a config.json",
                "请传入公开模型（如 llama-3-8b）、模型类型（如 llama）、类名（如 LlamaForCausalLM）"
                "或 config.json 的路径",
            ),
        )
    title, preset = PRESETS.get(config_class.model_type, ("", {}))
    config = make_config(config_class, preset, changes, where)
    return _build(cls, config, _preset_note(title, where), where)


def _class_names() -> list[str]:
    return [name for name in dir(transformers()) if "For" in name or name.endswith("Model")]


def _from_file(path: Path, changes: dict[str, Any], where: str) -> HubModel:
    values = read_config(path, where)
    names = values.get("architectures") or []
    model_type = _type_names().get(str(values.get("model_type", "")))
    if model_type is None:
        raise InputError(
            where,
            f"model type {values.get('model_type')!r}, architectures {names!r:.80}",
            Text(
                f"a model type of transformers {transformers().__version__}",
                f"transformers {transformers().__version__} 中的模型类型",
            ),
            Text(
                "a model with code of its own needs a function: write one that builds it and "
                "pass file.py:function",
                "自带代码的模型需要一个构建函数：请编写该函数并传入 file.py:function",
            ),
        )
    config_class = transformers().CONFIG_MAPPING[model_type]
    config = make_config(config_class, values, changes, where)
    first = next((name for name in names if hasattr(transformers(), str(name))), None)
    if first is not None:
        return _build(_class(first, where), config, (), where)
    candidates = _classes_for(model_type, config)
    if not candidates:
        raise unknown(where, f"{names!r:.80}", _class_names(), InputError)
    return _first_that_builds(candidates, config, (), where)


def _classes_for(model_type: str, config: Any) -> list[str]:
    """The classes of a model type, the one that it is most used as first."""
    tables = importlib.import_module("transformers.models.auto.modeling_auto")
    names = [f"MODEL_FOR_{task}_MAPPING_NAMES" for task in _TASKS]
    if not getattr(config, "is_encoder_decoder", False):
        names.sort(key=lambda name: "SEQ" in name)
    found = (getattr(tables, name, {}).get(model_type) for name in [*names, "MODEL_MAPPING_NAMES"])
    return [item if isinstance(item, str) else str(item[0]) for item in found if item is not None]


def _class(name: str, where: str) -> Any:
    try:
        return getattr(transformers(), name, None)
    except (ImportError, RuntimeError) as error:
        raise InputError(
            where,
            describe(error),
            Text("a class whose code can be imported", "代码可以导入的类"),
            Text("install what it needs", "请安装其依赖"),
        ) from None


def _build(cls: Any, config: Any, notes: tuple[Message, ...], where: str) -> HubModel:
    try:
        with guarded(where), torch.device("meta"):
            return HubModel(cls._from_config(config), config, notes)
    except InputError as error:
        raise not_built(where, error.given, type(config)) from None
