"""Stages: named parts of a model, each a list of module patterns.

A pattern is a module path in which `*` stands for anything; it takes the module with all that is
inside it. The first stage that matches takes the work; what no stage takes is `other`.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchstone.core.errors import ConfigError, UsageError
from torchstone.core.files import read_regular
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.cost.records.ledger import Cost, ancestors

StageMap = Mapping[str, Sequence[str]]
OTHER = "other"
_MOST = 1 << 20

PRESETS: dict[str, dict[str, tuple[str, ...]]] = {
    "decoder-only": {
        "embedding": ("*embed_tokens", "*wte", "*wpe", "*embed_in", "*word_embeddings"),
        "attention": ("*.self_attn", "*.attn", "*.attention", "*.self_attention"),
        "feed-forward": ("*.mlp", "*.feed_forward", "*.ffn", "*.block_sparse_moe", "*.experts"),
        "norm": ("*norm*", "*.ln_*"),
        "head": ("lm_head", "*.lm_head", "embed_out", "output"),
    },
    "encoder-decoder": {
        "encoder": ("encoder", "*.encoder"),
        "decoder": ("decoder", "*.decoder"),
        "head": ("lm_head", "proj_out", "*.lm_head", "*.proj_out"),
    },
    "vision-language": {
        "projector": ("*projector*", "*multi_modal*", "*.connector", "*aligner*", "*.merger"),
        "vision": (
            "*vision_tower*", "*vision_model*", "*visual*", "*sam_model*", "*vision_encoder*",
            "*image_encoder*",
        ),
        "head": ("lm_head", "*.lm_head"),
        "language": ("*language_model*", "*text_model*", "*.layers", "*embed_tokens*", "*.norm"),
    },
}  # fmt: skip


def preset(name: str) -> StageMap:
    if name not in PRESETS:
        raise unknown("cost: --stages", name, list(PRESETS))
    return PRESETS[name]


def read_stages(path: Path) -> StageMap:
    """A stage map from a TOML, JSON or YAML file: `name = ["pattern", …]`."""
    try:
        text = read_regular(path, _MOST).decode("utf-8", "replace")
    except OSError as error:
        raise ConfigError(
            str(path),
            error.strerror or str(error),
            Text("a readable file of stages", "可读的阶段文件"),
            Text("pass a file that exists, or a preset", "请传入存在的文件或预设名"),
        ) from None
    data = _parsed(path, text)
    if isinstance(data, Mapping) and isinstance(data.get("stages"), Mapping):
        data = data["stages"]
    if not isinstance(data, Mapping) or not data:
        raise _wrong(path, type(data).__name__)
    result: dict[str, tuple[str, ...]] = {}
    for name, patterns in data.items():
        listed = [patterns] if isinstance(patterns, str) else patterns
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise _wrong(path, f"{str(name)[:60]}: {type(patterns).__name__}")
        result[str(name)] = tuple(listed)
    return result


def _wrong(path: Path, given: str) -> ConfigError:
    return ConfigError(
        str(path),
        given,
        Text("stage names with lists of module patterns", "阶段名及其模块匹配模式列表"),
        Text('write for example: encoder = ["model.encoder"]', '例如：encoder = ["model.encoder"]'),
    )


def _parsed(path: Path, text: str) -> Any:
    try:
        if path.suffix == ".json":
            return json.loads(text)
        if path.suffix in (".yaml", ".yml"):
            return _yaml(path, text)
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            str(path),
            str(error).splitlines()[0],
            Text("a file that parses", "可以解析的文件"),
            Text("fix the file or pass another", "请修正该文件或换一个文件"),
        ) from None


def _yaml(path: Path, text: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]  # an extra: most people write TOML
    except ImportError:
        raise UsageError(
            str(path),
            "YAML",
            Text("the package PyYAML", "已安装 PyYAML"),
            Text("pip install pyyaml, or write TOML", "pip install pyyaml，或改用 TOML"),
        ) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ValueError(str(error).replace("\n", " ")) from None


def top_stages(cost: Cost) -> StageMap:
    """The model's top modules; a wrapper that holds nearly everything is opened."""
    names = _children(cost, "")
    sizes: dict[str, int] = {}
    for path, item in cost.modules.items():
        for above in ancestors(path):
            sizes[above] = sizes.get(above, 0) + item.parameters
    while names:
        whole = sizes.get("", 0) or 1
        large = [name for name in names if sizes[name] > 0.9 * whole]
        inner = _children(cost, large[0]) if large else []
        if not large or len(inner) < 2 or all(item.rpartition(".")[2].isdigit() for item in inner):
            break
        place = names.index(large[0])
        names[place : place + 1] = inner
    return {name: (name,) for name in names}


def _children(cost: Cost, path: str) -> list[str]:
    prefix = f"{path}." if path else ""
    return [
        name
        for name in cost.modules
        if name and name.startswith(prefix) and "." not in name[len(prefix) :]
    ]


class Stages:
    """Which stage a module belongs to."""

    def __init__(self, stages: StageMap) -> None:
        self.names = (*stages, OTHER)
        self._stages = stages
        patterns = [(item, name) for name, items in stages.items() for item in items]
        plain = not any(set(item) & set("*?[") for item, _ in patterns)
        self._exact = dict(reversed(patterns)) if plain else None
        self.of = functools.cache(self._of)

    def _of(self, module: str) -> str:
        if self._exact is not None:
            found = [self._exact[path] for path in ancestors(module) if path in self._exact]
            return min(found, key=self.names.index) if len(found) > 1 else (found or [OTHER])[0]
        for name, patterns in self._stages.items():
            for pattern in patterns:
                if any(fnmatch.fnmatchcase(path, pattern) for path in ancestors(module) if path):
                    return name
        return OTHER
