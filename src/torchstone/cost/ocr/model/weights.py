"""Published weights put into the composed model: read from safetensors, never unpickled.

Three ways of naming are understood: the vendor's, transformers', and the composed model's own.
"""

from __future__ import annotations

import importlib
import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.text import Text

_INDEX = "model.safetensors.index.json"
_INDEX_BYTES = 64 << 20
_COMPUTED = re.compile(r"(position_ids|inv_freq)$")
_RENAMES = [
    (re.compile(pattern), new)
    for pattern, new in (
        (r"^model\.language_model\.", "model."),
        (r"^model\.vision_tower\.sam_encoder\.", "model.sam_model."),
        (r"^model\.vision_tower\.vision_encoder\.", "model.vision_model.encoder."),
        (r"^model\.vision_tower\.query_", "model.vision_model.query_"),
        (r"^model\.multi_modal_projector\.", "model.projector.layers."),
        (r"^model\.view_separator$", "model.view_seperator"),
        (r"^model\.qwen2_model\.model\.model\.", "model.vision_model.encoder."),
        (r"^model\.qwen2_model\.query_(\d+)\.", r"model.vision_model.query_\1_resolution."),
        (r"^(model\.sam_model)\.patch_embed\.proj\.", r"\1.patch_embed.projection."),
        (r"^(model\.sam_model)\.blocks\.(\d+)\.norm(\d)\.", r"\1.layers.\2.layer_norm\3."),
        (r"^(model\.sam_model)\.blocks\.", r"\1.layers."),
        (r"^(model\.sam_model\.neck)\.0\.", r"\1.conv1."),
        (r"^(model\.sam_model\.neck)\.1\.", r"\1.layer_norm1."),
        (r"^(model\.sam_model\.neck)\.2\.", r"\1.conv2."),
        (r"^(model\.sam_model\.neck)\.3\.", r"\1.layer_norm2."),
        (r"^(model\.sam_model)\.net_2\.", r"\1.proj.conv1."),
        (r"^(model\.sam_model)\.net_3\.", r"\1.proj.conv2."),
        (r"^(model\.vision_model)\.transformer\.", r"\1.encoder."),
    )
]
_FUSED = re.compile(r"^(model\.vision_model\..*\.self_attn)\.qkv_proj\.(weight|bias)$")
_EXPERT = re.compile(r"^(.*\.mlp\.experts)\.(\d+)\.(gate|up|down)_proj\.weight$")


class Slot(NamedTuple):
    """Where a stored tensor, or a part of its rows, goes."""

    name: str
    at: tuple[int | slice, ...] = ()
    rows: slice = slice(None)


def has_weights(folder: Path) -> bool:
    """Are there weights that can be read? Weights as pickles alone are an error."""
    if _files(folder):
        return True
    pickled = sorted(
        item.name for pattern in ("*.bin", "*.pt", "*.pth") for item in folder.glob(pattern)
    )
    if pickled:
        raise InputError(
            str(folder),
            pickled[0],
            Text("weights as .safetensors", ".safetensors 格式的权重"),
            Text(
                "convert them: a pickle can run code when it is loaded, so it never is",
                "请先转换：pickle 在加载时可能执行代码，因此从不加载",
            ),
        )
    return False


def load(model: nn.Module, folder: Path) -> None:
    """Put the folder's weights into the model; every parameter must be there, and nothing else."""
    targets = dict(model.named_parameters())
    missing = {name: weight.numel() for name, weight in targets.items()}
    for path in _files(folder):
        for stored, tensor in _tensors(path):
            for place in places(stored, tensor.shape[0] if tensor.ndim else 1):
                target = targets.get(place.name)
                if target is None:
                    raise _unfit(path, stored, Text("a name of this model", "该模型中的名称"))
                _put(path, stored, target[place.at], tensor[place.rows] if tensor.ndim else tensor)
                missing[place.name] -= target[place.at].numel()
    lacking = [name for name, left in missing.items() if left]
    if lacking:
        more = f" (+{len(lacking) - 1})" if len(lacking) > 1 else ""
        raise _unfit(folder, f"nothing for {lacking[0]}{more}", Text("every weight", "全部权重"))


def places(stored: str, rows: int) -> list[Slot]:
    """Where a tensor of this name and so many rows goes; nowhere if it is computed anyway."""
    if _COMPUTED.search(stored):
        return []
    name = stored
    for pattern, new in _RENAMES:
        name = pattern.sub(new, name)
    if found := _FUSED.match(name):
        third = rows // 3
        return [
            Slot(f"{found[1]}.{part}_proj.{found[2]}", (), slice(i * third, (i + 1) * third))
            for i, part in enumerate("qkv")
        ]
    if found := _EXPERT.match(name):
        expert = int(found[2])
        if found[3] == "down":
            return [Slot(f"{found[1]}.down_proj", (expert,))]
        start = 0 if found[3] == "gate" else rows
        return [Slot(f"{found[1]}.gate_up_proj", (expert, slice(start, start + rows)))]
    return [Slot(name)]


def _put(path: Path, stored: str, target: Tensor, source: Tensor) -> None:
    if target.shape != source.shape:
        given = f"{stored} {tuple(source.shape)}"
        wanted = str(tuple(target.shape))
        raise _unfit(path, given, Text(wanted, wanted))
    with torch.no_grad():
        target.copy_(source)


def _tensors(path: Path) -> Iterator[tuple[str, Tensor]]:
    safetensors: Any = importlib.import_module("safetensors")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError("not a regular file")
        with safetensors.safe_open(str(path), framework="pt") as file:
            for name in file.keys():  # noqa: SIM118  the file is no mapping
                yield name, file.get_tensor(name)
    except (OSError, safetensors.SafetensorError) as error:
        raise _unfit(path, str(error), Text("a safetensors file", "safetensors 文件")) from None


def _files(folder: Path) -> list[Path]:
    index = folder / _INDEX
    if not index.exists():
        return sorted(folder.glob("*.safetensors"))
    try:
        table = json.loads(read_regular(index, _INDEX_BYTES))
        names = sorted({str(name) for name in table["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unfit(
            index, f"{type(error).__name__}: {error}", Text("a weight_map", "weight_map 表")
        ) from None
    outside = [name for name in names if Path(name).name != name]
    if outside:
        raise _unfit(index, outside[0], Text("a file name without folders", "不含目录的文件名"))
    present = [folder / name for name in names]
    if not any(path.exists() for path in present):
        return []  # the published index without its shards: a configuration only
    return present


def _unfit(path: Path, given: str, expected: Text) -> InputError:
    return InputError(
        str(path),
        given,
        expected,
        Text(
            "use the published model folder, complete and unchanged",
            "请使用完整且未改动的已发布模型文件夹",
        ),
    )
