"""What to analyse: the representative page, how it is cut, and how long the text is."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchstone.core.errors import UsageError
from torchstone.core.options import option
from torchstone.core.text import Text

PROMPT = "<image>\n<|grounding|>Convert the document to markdown."


@dataclass(frozen=True, slots=True)
class AnalysisConfig:
    """The page and the sizes of one static analysis."""

    image_h: int = option(1024, "height in pixels of a synthetic page", "合成页面的高度（像素）")
    image_w: int = option(1024, "width in pixels of a synthetic page", "合成页面的宽度（像素）")
    base_size: int = option(
        1024,
        "side in pixels of the global view, when the page is also cut into crops",
        "全局视图的边长（像素），用于同时裁剪页面时",
    )
    image_size: int = option(
        640,
        "side in pixels of a crop; without crops, of the only view",
        "裁剪块的边长（像素）；不裁剪时为唯一视图的边长",
    )
    seq_len: int | None = option(
        None,
        "tokens of the prefill and of the context of a decode step; as many as the page has "
        "by default",
        "预填充的 token 数，也是解码一步的上下文长度；默认与页面的 token 数相同",
    )
    crop_mode: bool = option(True, "look at the page in crops too", "除全局视图外还裁剪页面")
    patch_size: int = option(
        16,
        "pixels along a side of one patch; a property of the model",
        "一个图块的边长（像素）；由模型决定",
    )
    downsample_ratio: int = option(
        4,
        "patches along a side of one image token; a property of the model",
        "一个图像 token 的边长（图块数）；由模型决定",
    )
    use_analytic_fallback: bool = option(
        True,
        "take the closed forms where counting fails; otherwise a failure is an error",
        "计数失败时采用解析公式；否则失败即报错",
    )
    use_synthetic_inputs: bool = option(
        True,
        "a plain grey page instead of the image at sample_image_path",
        "使用纯灰页面，而非 sample_image_path 处的图像",
    )
    sample_image_path: str | None = option(
        None, "an image of a page (needs Pillow)", "页面图像（需要 Pillow）", metavar="FILE"
    )
    prompt: str = option(
        PROMPT,
        "text of the prompt; <image> stands for the page",
        "提示词；<image> 代表页面",
        metavar="TEXT",
    )

    def __post_init__(self) -> None:
        for name in ("image_h", "image_w", "base_size", "image_size"):
            _whole(name, getattr(self, name), 16 if name.endswith("size") else 1)
        for name in ("patch_size", "downsample_ratio"):
            _whole(name, getattr(self, name), 1)
        if self.seq_len is not None:
            _whole("seq_len", self.seq_len, 1)
        for name in ("crop_mode", "use_analytic_fallback", "use_synthetic_inputs"):
            if not isinstance(getattr(self, name), bool):
                raise _wrong(name, getattr(self, name), Text("true or false", "true 或 false"))
        if self.prompt.count("<image>") != 1:
            raise _wrong("prompt", self.prompt, Text("one <image>", "恰好一个 <image>"))
        if not self.use_synthetic_inputs and not self.sample_image_path:
            raise _wrong(
                "sample_image_path",
                self.sample_image_path,
                Text("the path of an image", "图像的路径"),
            )


@dataclass(slots=True)
class StageAnalysisResult:
    """What one stage costs. FLOPs are 2 x multiply-adds, with full attention."""

    stage_name: str
    """sam, clip, projector, prefill or decode."""
    params: int = 0
    flops: float = 0.0
    """The best of the three figures below: isolated, else extracted, else analytical."""
    activations: float = 0.0
    """Output elements of matrix products, attention and convolutions."""
    operators: dict[str, float] = field(default_factory=dict)
    """FLOPs by operator."""
    flops_isolated: float | None = None
    """Counted with the stage alone."""
    flops_extracted: float | None = None
    """The stage's part of the whole model's pass."""
    flops_analytic: float | None = None
    """From the closed form."""
    notes: list[str] = field(default_factory=list)


_LARGEST = 1 << 20


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
        bounds = f"{least} … {_LARGEST}"
        raise _wrong(name, value, Text(f"a whole number, {bounds}", f"整数，{bounds}"))


def _wrong(name: str, value: object, expected: Text) -> UsageError:
    return UsageError(
        f"AnalysisConfig.{name}",
        repr(value),
        expected,
        Text("pass another value", "请传入其他值"),
    )
