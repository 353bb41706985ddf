"""Configurations of transformers models: read from a file or made, and changed as the user asks."""

from __future__ import annotations

import functools
import importlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchstone.core.errors import InputError, TorchstoneError, UsageError
from torchstone.core.files import read_regular
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.runtime.model_hubs.torchvision_repair import repair_torchvision
from torchstone.runtime.sizes import parse_dtype
from torchstone.runtime.user_code import describe, guarded

LARGEST_CONFIG_BYTES = 16 << 20
_ALWAYS = frozenset({"attn_implementation", "experts_implementation", "dtype", "use_cache"})
_KEY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@functools.cache
def transformers() -> Any:
    """The package, or an error that says what to install."""
    try:
        repair_torchvision()
        return importlib.import_module("transformers")
    except (ImportError, RuntimeError) as error:
        raise InputError(
            "hf:",
            describe(error),
            Text("the transformers package", "transformers 软件包"),
            Text(
                "run `pip install 'torchstone[hf]'`; a torchvision of another build than torch "
                "breaks it too: remove it",
                "请运行 `pip install 'torchstone[hf]'`；与 torch 构建不一致的 torchvision "
                "也会使其无法使用，请将其卸载",
            ),
        ) from error


def parse_changes(query: str, where: str) -> dict[str, Any]:
    """`num_hidden_layers=2&text_config.hidden_size=64` as nested dictionaries."""
    changes: dict[str, Any] = {}
    for item in filter(None, query.split("&")):
        key, equals, text = item.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise UsageError(
                where,
                repr(item[:60]),
                Text("key=value", "key=value"),
                Text(
                    "write hf:llama?num_hidden_layers=2&hidden_size=512",
                    "例如 hf:llama?num_hidden_layers=2&hidden_size=512",
                ),
            )
        *parents, last = key.split(".")
        table = changes
        for parent in parents:
            inner = table.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise UsageError(
                    where,
                    repr(item[:60]),
                    Text(f"{parent} once, as a value or as a table", f"{parent} 只能是值或表之一"),
                    Text("leave one of them out", "请去掉其中一个"),
                )
            table = inner
        table[last] = _value(text)
    return changes


def _value(text: str) -> Any:
    """A number, a truth value, a list, or the text itself."""
    lowered = text.lower()
    try:
        return json.loads(lowered if lowered in ("true", "false", "null") else text)
    except (ValueError, RecursionError):
        return None if lowered == "none" else text


def read_config(path: Path, where: str) -> dict[str, Any]:
    """The values of a config.json, or of the one in a folder."""
    file = path / "config.json" if path.is_dir() else path
    try:
        values = json.loads(read_regular(file, LARGEST_CONFIG_BYTES))
    except OSError as error:
        raise InputError(
            where,
            describe(error),
            Text("a config.json or a folder that holds one", "config.json 文件或包含它的文件夹"),
            Text(
                "nothing is downloaded: pass the path of the file, or a model type such as hf:llama",
                "不会下载任何内容：请传入文件路径，或 hf:llama 这样的模型类型",
            ),
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            str(file),
            describe(error),
            Text("JSON", "JSON"),
            Text("fix the file", "请修正该文件"),
        ) from None
    if not isinstance(values, dict):
        raise InputError(
            str(file),
            f"a {type(values).__name__}",
            Text("a table of settings", "配置表"),
            Text("pass the config.json of a model", "请传入模型的 config.json"),
        )
    return values


def make_config(
    config_class: Any, values: Mapping[str, Any], changes: dict[str, Any], where: str
) -> Any:
    """The configuration with the changes of the user, each of which must exist."""
    _check(config_class, values, changes, where)
    if isinstance(changes.get("dtype"), str):
        changes = {
            **changes,
            "dtype": str(parse_dtype(changes["dtype"], where)).removeprefix("torch."),
        }
    base = {**_default_parts(config_class, changes), **values}
    merged = _merged(_fitted(base, changes), changes)
    try:
        with guarded(where):
            return config_class.from_dict(merged) if values else config_class(**merged)
    except InputError as error:
        raise not_built(where, error.given, config_class) from None


def _default_parts(config_class: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a model sets in its parts, for those that the user changes in part only."""
    wanted = [key for key, value in changes.items() if isinstance(value, dict)]
    default = _default(config_class) if wanted else None
    parts: dict[str, Any] = {key: getattr(default, key, None) for key in wanted}
    return {key: part.to_diff_dict() for key, part in parts.items() if hasattr(part, "to_dict")}


def _default(config_class: Any) -> Any:
    try:
        return config_class()
    except Exception:  # a default that cannot be made is found out when the model is built
        return None


def _check(
    config_class: Any, values: Mapping[str, Any], changes: Mapping[str, Any], where: str
) -> None:
    """A misspelt key would be taken without a word: it is compared with the known ones."""
    known = set(values) | set(dir(config_class)) | _ALWAYS
    default = _default(config_class)
    if default is not None:
        known |= set(default.to_dict()) | set(config_class.attribute_map)
    known = {name for name in known if not name.startswith("_")}
    for key, value in changes.items():
        if isinstance(value, int) and value < 0 and key.startswith(("num_", "n_")):
            raise UsageError(
                f"{where}: {key}",
                str(value),
                Text("a number that is not negative", "非负数"),
                Text(f"pass another {key}", f"请改传 {key}"),
            )
        if key not in known and not hasattr(default, key):
            raise unknown(f"{where}: {key}", key, sorted(known))
        if isinstance(value, dict):
            _check_part(getattr(default, key, None), values.get(key), value, f"{where}: {key}")


def _check_part(part: Any, values: Any, changes: dict[str, Any], where: str) -> None:
    """Changes of a part: a configuration of its own, or a plain table."""
    if hasattr(part, "to_dict"):
        _check(type(part), values or {}, changes, where)
    elif not all(item is None or isinstance(item, Mapping) for item in (part, values)):
        raise UsageError(
            where,
            ", ".join(changes),
            Text("one value, for it has no parts", "单个值，因为它没有组成部分"),
            Text("leave out what follows the dot", "请去掉点号之后的部分"),
        )


def _fitted(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lists with one entry per layer are cut when the user asks for fewer layers."""
    before, after = values.get("num_hidden_layers"), changes.get("num_hidden_layers")
    result = dict(values)
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(changes.get(key), dict):
            result[key] = _fitted(value, changes[key])
        elif isinstance(value, list) and isinstance(after, int) and len(value) == before:
            result[key] = value[:after]
    return result


def _merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(values)
    for key, value in changes.items():
        old = result.get(key)
        result[key] = _merged(old or {}, value) if isinstance(value, dict) else value
    return result


def not_built(where: str, given: str, config_class: Any) -> TorchstoneError:
    version = transformers().__version__
    name = config_class.__name__
    return InputError(
        where,
        given,
        Text(
            f"a configuration that builds in transformers {version}",
            f"在 transformers {version} 中可以构建的配置",
        ),
        Text(
            f"pass the model's published file, hf:path/to/config.json, or set what {name} lacks: "
            f"{where}?key=value",
            f"请传入该模型公开的文件 hf:path/to/config.json，或补上 {name} 缺少的设置："
            f"{where}?key=value",
        ),
    )
