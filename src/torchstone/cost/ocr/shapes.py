"""The dimensions of DeepSeek-OCR and DeepSeek-OCR-2, as published or as read from a config.json.

Everything that the model, the closed forms and the input preparation need is in these plain
data classes; no weights and no outside code are involved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torchstone.core.errors import InputError
from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class SamShape:
    """The first vision encoder: windowed attention, then two strided convolutions."""

    hidden_size: int = 768
    layers: int = 12
    heads: int = 12
    mlp_size: int = 3072
    image_size: int = 1024
    """Side for which the position tables are made; other sides are interpolated."""
    patch_size: int = 16
    window_size: int = 14
    global_layers: tuple[int, ...] = (2, 5, 8, 11)
    neck_channels: int = 256
    downsample_channels: tuple[int, int] = (512, 1024)

    @property
    def downsample_ratio(self) -> int:
        """Patches along a side for one image token along that side: two convolutions of stride 2."""
        return 4


@dataclass(frozen=True, slots=True)
class ClipShape:
    """The second vision encoder of DeepSeek-OCR: CLIP-L, fed with the features of the first."""

    hidden_size: int = 1024
    layers: int = 24
    heads: int = 16
    mlp_size: int = 4096
    image_size: int = 224
    patch_size: int = 14


@dataclass(frozen=True, slots=True)
class QueryShape:
    """The second vision encoder of DeepSeek-OCR-2: a decoder with learned queries."""

    hidden_size: int = 896
    layers: int = 24
    heads: int = 14
    key_value_heads: int = 2
    mlp_size: int = 4864
    vocabulary: int = 151936
    rope_theta: float = 1e6
    queries: tuple[tuple[int, int], ...] = ((768, 144), (1024, 256))
    """Side of a view in pixels, and how many queries it has."""


@dataclass(frozen=True, slots=True)
class TextShape:
    """The language model: dense layers first, then mixtures of experts."""

    hidden_size: int = 1280
    mlp_size: int = 6848
    layers: int = 12
    heads: int = 10
    key_value_heads: int = 10
    vocabulary: int = 129280
    dense_layers: int = 1
    expert_size: int = 896
    routed_experts: int = 64
    active_experts: int = 6
    shared_experts: int = 2
    rope_theta: float = 10000.0
    positions: int = 8192
    norm_epsilon: float = 1e-6

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.heads

    @property
    def expert_layers(self) -> int:
        return self.layers - self.dense_layers


@dataclass(frozen=True, slots=True)
class OcrShape:
    """One model, whole."""

    name: str
    sam: SamShape
    encoder: ClipShape | QueryShape
    text: TextShape
    maximum_crops: int = 9
    """Most crops that the vendor's preparation makes of one image."""
    crop_size: int = 640
    """Side of a crop in the vendor's preparation."""
    image_token: int = 128815

    @property
    def generation(self) -> int:
        """1 for DeepSeek-OCR, 2 for DeepSeek-OCR-2."""
        return 1 if isinstance(self.encoder, ClipShape) else 2

    @property
    def projector_input(self) -> int:
        """DeepSeek-OCR joins the features of both encoders; its successor takes the second's."""
        own = self.encoder.hidden_size
        return own + self.sam.downsample_channels[1] if self.generation == 1 else own

    def plain(self) -> dict[str, Any]:
        """As plain data, for a report."""
        return {"generation": self.generation, **asdict(self, dict_factory=_with_lists)}


def _with_lists(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON has lists and no tuples."""
    return {key: _listed(value) for key, value in pairs}


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


DEEPSEEK_OCR = OcrShape("deepseek-ocr", SamShape(), ClipShape(), TextShape())
DEEPSEEK_OCR_2 = OcrShape(
    "deepseek-ocr-2",
    SamShape(downsample_channels=(512, 896)),
    QueryShape(),
    TextShape(),
    maximum_crops=6,
    crop_size=768,
)
SMALL = OcrShape(
    "small",
    SamShape(64, 2, 2, 256, 256, 16, 14, (1,), 32, (48, 64)),
    ClipShape(64, 2, 2, 256),
    TextShape(64, 160, 3, 4, 4, 512, 1, 48, 8, 2, 1),
    crop_size=128,
    image_token=500,
)
"""Every part of DeepSeek-OCR in a size that any laptop runs in milliseconds."""
PUBLISHED = {shape.name: shape for shape in (DEEPSEEK_OCR, DEEPSEEK_OCR_2, SMALL)}


def shape_from_config(config: Mapping[str, Any], where: str) -> OcrShape:
    """The dimensions that a config.json of DeepSeek-OCR or DeepSeek-OCR-2 describes."""
    reader = _Reader(config, where)
    vision = reader.table("vision_config")
    width = vision.table("width")
    second = width.has("qwen2-0-5b") or "OCR2" in "".join(reader.names("architectures"))
    base = DEEPSEEK_OCR_2 if second else DEEPSEEK_OCR
    if not second and not width.has("clip-l-14-224") and not reader.is_ours():
        raise reader.error(
            f"architectures {reader.names('architectures')}, vision width {sorted(width.values)}"
        )
    sam = _sam(vision, width.table("sam_vit_b"), second)
    encoder = _query(width.table("qwen2-0-5b")) if second else _clip(width.table("clip-l-14-224"))
    text = _text(reader)
    projector = reader.table("projector_config")
    shape = OcrShape(
        base.name,
        sam,
        encoder,
        text,
        base.maximum_crops,
        reader.whole("crop_size", base.crop_size),
        min(reader.whole("image_token_id", base.image_token), text.vocabulary - 1),
    )
    given = projector.whole("input_dim", shape.projector_input)
    if given != shape.projector_input:
        raise projector.error(f"input_dim {given}", expected=str(shape.projector_input))
    return shape


def _sam(vision: _Reader, own: _Reader, second: bool) -> SamShape:
    base = (DEEPSEEK_OCR_2 if second else DEEPSEEK_OCR).sam
    hidden = own.whole("width", base.hidden_size)
    channels = own.wholes("downsample_channels", base.downsample_channels)
    if second:
        # The published file says 1024; the weights, and the encoder behind them, have 896.
        channels = (channels[0], base.downsample_channels[1])
    if len(channels) != 2:
        raise own.error(f"downsample_channels {list(channels)}", expected="two numbers")
    return SamShape(
        hidden,
        own.whole("layers", base.layers),
        own.whole("heads", base.heads),
        4 * hidden,
        vision.whole("image_size", base.image_size),
        global_layers=own.wholes("global_attn_indexes", base.global_layers),
        neck_channels=own.whole("out_chans", base.neck_channels),
        downsample_channels=(channels[0], channels[1]),
    )


def _clip(own: _Reader) -> ClipShape:
    base = ClipShape()
    hidden = own.whole("width", base.hidden_size)
    return ClipShape(
        hidden,
        own.whole("layers", base.layers),
        own.whole("heads", base.heads),
        4 * hidden,
        own.whole("image_size", base.image_size),
        own.whole("patch_size", base.patch_size),
    )


def _query(own: _Reader) -> QueryShape:
    return QueryShape(own.whole("dim", QueryShape().hidden_size))


def _text(own: _Reader) -> TextShape:
    base = TextShape()
    hidden = own.whole("hidden_size", base.hidden_size)
    heads = own.whole("num_attention_heads", base.heads)
    if hidden % heads:
        raise own.error(f"hidden_size {hidden}, {heads} heads", expected="a multiple of the heads")
    return TextShape(
        hidden,
        own.whole("intermediate_size", base.mlp_size),
        own.whole("num_hidden_layers", base.layers),
        heads,
        own.whole("num_key_value_heads", heads),
        own.whole("vocab_size", base.vocabulary),
        own.whole("first_k_dense_replace", base.dense_layers, least=0),
        own.whole("moe_intermediate_size", base.expert_size),
        own.whole("n_routed_experts", base.routed_experts),
        own.whole("num_experts_per_tok", base.active_experts),
        own.whole("n_shared_experts", base.shared_experts, least=0),
        float(own.whole("rope_theta", int(base.rope_theta))),
        own.whole("max_position_embeddings", base.positions),
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
            raise self.error(f"{key} {value!r}", expected="a table")
        return _Reader(value or {}, f"{self.where}: {key}")

    def whole(self, key: str, default: int, least: int = 1) -> int:
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise self.error(f"{key} {value!r}", expected=Text("a whole number", "整数"))
        if not least <= value <= _LARGEST:
            bounds = f"{least} … {_LARGEST}"
            raise self.error(
                f"{key} {value!r}", expected=Text(f"within {bounds}", f"{bounds} 之间")
            )
        return int(value)

    def wholes(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, list):
            raise self.error(f"{key} {value!r}", expected=Text("a list", "列表"))
        return tuple(_Reader({key: item}, self.where).whole(key, 0, least=0) for item in value)

    def error(self, given: str, expected: Text | str = "") -> InputError:
        return InputError(
            self.where,
            given,
            expected
            or Text(
                "the configuration of DeepSeek-OCR or DeepSeek-OCR-2",
                "DeepSeek-OCR 或 DeepSeek-OCR-2 的配置",
            ),
            Text(
                "use the config.json of the published model folder",
                "请使用已发布模型文件夹中的 config.json",
            ),
        )


_LARGEST = 10_000_000
"""No dimension of a real model is larger; a typing error must not fill the memory."""
