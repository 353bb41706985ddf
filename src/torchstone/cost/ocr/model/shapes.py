"""The dimensions of DeepSeek-OCR and DeepSeek-OCR-2, and those that are published.

Everything that the model, the closed forms and the input preparation need is in these plain
data classes; no weights and no outside code are involved.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


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
