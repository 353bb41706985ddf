"""The dimensions that a config.json of DeepSeek-OCR or DeepSeek-OCR-2 describes.

Every figure is checked where it is read, and that they fit together before anything is built: the
file may come from anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.cost.ocr.model.shapes import (
    DEEPSEEK_OCR,
    DEEPSEEK_OCR_2,
    ClipShape,
    OcrShape,
    QueryShape,
    SamShape,
    TextShape,
)

_WIDEST = 1 << 20
"""Bounds far beyond every real model: a typing error must not fill the memory."""
_MOST_LAYERS, _MOST_HEADS, _MOST_WORDS, _MOST_EXPERTS = 1000, 1 << 14, 10_000_000, 1 << 16
_LARGEST_IMAGE, _HIGHEST = 1 << 14, 1e15
_LONGEST = 160
"""Characters of a value in an error."""
_TILE = 64
"""Pixels along a side of one image token: patches of 16, downsampled by 4."""
_WHOLE = Text("a whole number", "整数")
_TODO = Text(
    "use the config.json of the published model folder", "请使用已发布模型文件夹中的 config.json"
)


def shape_from_config(config: Mapping[str, Any], where: str) -> OcrShape:
    """The dimensions that a config.json describes; `where` names it in errors."""
    reader = _Reader(config, where)
    vision = reader.table("vision_config")
    width = vision.table("width")
    second = width.has("qwen2-0-5b") or "OCR2" in "".join(reader.names("architectures"))
    base = DEEPSEEK_OCR_2 if second else DEEPSEEK_OCR
    if not second and not width.has("clip-l-14-224") and not reader.is_ours():
        raise reader.error(
            f"architectures {reader.names('architectures')}, vision width {sorted(width.values)}"
        )
    encoder = _query(width.table("qwen2-0-5b")) if second else _clip(width.table("clip-l-14-224"))
    sam = _sam(vision, width.table("sam_vit_b"), encoder)
    text = _text(reader)
    shape = OcrShape(
        base.name,
        sam,
        encoder,
        text,
        base.maximum_crops,
        reader.whole("crop_size", base.crop_size, _TILE, _LARGEST_IMAGE),
        min(reader.whole("image_token_id", base.image_token, 0), text.vocabulary - 1),
    )
    projector = reader.table("projector_config")
    given = projector.whole("input_dim", shape.projector_input)
    if given != shape.projector_input:
        raise projector.error(f"input_dim {given}", str(shape.projector_input))
    return shape


def _sam(vision: _Reader, own: _Reader, encoder: ClipShape | QueryShape) -> SamShape:
    second = isinstance(encoder, QueryShape)
    base = (DEEPSEEK_OCR_2 if second else DEEPSEEK_OCR).sam
    hidden = own.whole("width", base.hidden_size, 1, _WIDEST)
    layers = own.whole("layers", base.layers, 1, _MOST_LAYERS)
    channels = own.wholes("downsample_channels", base.downsample_channels, 1, _WIDEST)
    if len(channels) != 2:
        raise own.error(f"downsample_channels {list(channels)}", Text("two numbers", "两个数"))
    # In DeepSeek-OCR-2 the published file says 1024; the weights, and the encoder, have 896.
    last = base.downsample_channels[1] if second else channels[1]
    if last != encoder.hidden_size:
        raise own.error(
            f"downsample_channels ending in {last}",
            Text(
                f"{encoder.hidden_size}, the width of the second encoder",
                f"{encoder.hidden_size}，即第二编码器的宽度",
            ),
        )
    return SamShape(
        hidden,
        layers,
        own.heads("heads", base.heads, hidden),
        4 * hidden,
        vision.tiled("image_size", base.image_size, _TILE),
        global_layers=own.wholes("global_attn_indexes", base.global_layers, 0, layers - 1),
        neck_channels=own.whole("out_chans", base.neck_channels, 1, _WIDEST),
        downsample_channels=(channels[0], last),
    )


def _clip(own: _Reader) -> ClipShape:
    base = ClipShape()
    hidden = own.whole("width", base.hidden_size, 1, _WIDEST)
    patch = own.whole("patch_size", base.patch_size, 1, _LARGEST_IMAGE)
    return ClipShape(
        hidden,
        own.whole("layers", base.layers, 1, _MOST_LAYERS),
        own.heads("heads", base.heads, hidden),
        4 * hidden,
        own.tiled("image_size", base.image_size, patch),
        patch,
    )


def _query(own: _Reader) -> QueryShape:
    base = QueryShape()
    hidden = own.whole("dim", base.hidden_size, 1, _WIDEST)
    if hidden != base.hidden_size:
        raise own.error(
            f"dim {hidden}",
            Text(
                f"{base.hidden_size}, the only width there is",
                f"{base.hidden_size}，仅有这一种宽度",
            ),
        )
    return QueryShape(hidden)


def _text(own: _Reader) -> TextShape:
    base = TextShape()
    hidden = own.whole("hidden_size", base.hidden_size, 1, _WIDEST)
    heads = own.heads("num_attention_heads", base.heads, hidden)
    if hidden // heads % 2:
        raise own.error(
            f"hidden_size {hidden}, {heads} heads",
            Text("heads of an even size, which rotary positions need", "偶数大小的头（旋转位置编码所需）"),
        )  # fmt: skip
    layers = own.whole("num_hidden_layers", base.layers, 1, _MOST_LAYERS)
    experts = own.whole("n_routed_experts", base.routed_experts, 1, _MOST_EXPERTS)
    return TextShape(
        hidden,
        own.whole("intermediate_size", base.mlp_size, 1, _WIDEST),
        layers,
        heads,
        own.divisor("num_key_value_heads", heads, heads, "num_attention_heads"),
        own.whole("vocab_size", base.vocabulary, 1, _MOST_WORDS),
        own.whole("first_k_dense_replace", base.dense_layers, 0, layers),
        own.whole("moe_intermediate_size", base.expert_size, 1, _WIDEST),
        experts,
        own.whole("num_experts_per_tok", min(base.active_experts, experts), 1, experts),
        own.whole("n_shared_experts", base.shared_experts, 0, _MOST_EXPERTS),
        own.positive("rope_theta", base.rope_theta),
        own.whole("max_position_embeddings", base.positions, 1, _MOST_WORDS),
    )


class _Reader:
    """One table of the configuration, and where it stands."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def is_ours(self) -> bool:
        """The vendor's builder ignores the vision table: a file without one means CLIP-L."""
        return "DeepseekOCRForCausalLM" in self.names("architectures")

    def has(self, key: str) -> bool:
        return isinstance(self.values.get(key), Mapping)

    def names(self, key: str) -> list[str]:
        value = self.values.get(key) or []
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]

    def table(self, key: str) -> _Reader:
        value = self.values.get(key, {})
        if value is not None and not isinstance(value, Mapping):
            raise self.error(f"{key} {value!r}", Text("a table", "一个表"))
        return _Reader(value or {}, f"{self.where}: {key}")

    def number(self, key: str, default: float, expected: Text) -> float:
        value = self.values.get(key)
        if value is None:
            return default
        wrong = isinstance(value, bool) or not isinstance(value, int | float)
        if wrong or (isinstance(value, float) and not math.isfinite(value)):
            raise self.error(f"{key} {_short(value)}", expected)
        number: float = value
        return number

    def positive(self, key: str, default: float) -> float:
        value = self.number(key, default, Text("a number", "数"))
        if not 0 < value < _HIGHEST:
            bounds = f"0 … {_HIGHEST:g}"
            raise self.error(f"{key} {_short(value)}", Text(f"within {bounds}", f"{bounds} 之间"))
        return float(value)

    def whole(self, key: str, default: int, least: int = 1, most: int = _MOST_WORDS) -> int:
        value = self.number(key, default, _WHOLE)
        if value != int(value):
            raise self.error(f"{key} {value!r}", _WHOLE)
        if not least <= value <= most:
            bounds = f"{least} … {most}"
            raise self.error(f"{key} {_short(value)}", Text(f"within {bounds}", f"{bounds} 之间"))
        return int(value)

    def wholes(self, key: str, default: tuple[int, ...], least: int, most: int) -> tuple[int, ...]:
        value = self.values.get(key)
        if value is None:
            return tuple(item for item in default if item <= most)
        if not isinstance(value, list) or len(value) > _MOST_LAYERS:
            raise self.error(f"{key} {_short(value)}", Text("a short list", "较短的列表"))
        if any(item is None for item in value):
            raise self.error(f"{key} {_short(value)}", Text("numbers", "数"))
        return tuple(_Reader({key: item}, self.where).whole(key, 0, least, most) for item in value)

    def heads(self, key: str, default: int, width: int) -> int:
        """As many heads as divide a width."""
        return self.divisor(key, default, width, f"width {width}")

    def divisor(self, key: str, default: int, whole: int, of: str) -> int:
        value = self.whole(key, default, 1, _MOST_HEADS)
        if whole % value:
            raise self.error(
                f"{key} {value}", Text(f"a divisor of {whole} ({of})", f"{whole}（{of}）的约数")
            )
        return value

    def tiled(self, key: str, default: int, tile: int) -> int:
        """Pixels along a side that is made of whole tiles."""
        value = self.whole(key, default, tile, _LARGEST_IMAGE)
        if value % tile:
            raise self.error(f"{key} {value}", Text(f"a multiple of {tile}", f"{tile} 的倍数"))
        return value

    def error(self, given: str, expected: Text | str = "") -> InputError:
        usual = Text(
            "the configuration of DeepSeek-OCR or DeepSeek-OCR-2",
            "DeepSeek-OCR 或 DeepSeek-OCR-2 的配置",
        )
        said = given if len(given) <= _LONGEST else given[: _LONGEST - 1] + "…"
        return InputError(self.where, said, expected or usual, _TODO)


def _short(value: Any) -> str:
    """A value as it was given, but no page of digits."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "of more than 30 digits"
    return repr(value)
