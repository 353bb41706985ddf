"""One page under one configuration: how it is cut, and the prompt it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.model.shapes import OcrShape, QueryShape
from torchstone.cost.ocr.page.images import Plan, open_page, plan, views
from torchstone.cost.ocr.page.prompt import tokens


@dataclass(frozen=True, slots=True)
class Case:
    """What the page asks of the model."""

    config: AnalysisConfig
    plan: Plan
    ids: tuple[int, ...]
    mask: tuple[bool, ...]
    exact: bool
    """The number of text tokens is known, not assumed."""

    @property
    def prompt_tokens(self) -> int:
        return len(self.ids)

    @property
    def image_tokens(self) -> int:
        return sum(self.mask)

    @property
    def prefill_length(self) -> int:
        return self.config.seq_len or self.prompt_tokens

    @property
    def decode_length(self) -> int:
        """Tokens that a decode step attends to: by default the page's and the new one."""
        return self.config.seq_len or self.prompt_tokens + 1

    def length(self, stage: str) -> int:
        return self.decode_length if stage == "decode" else self.prefill_length


def make_case(config: AnalysisConfig, shape: OcrShape, tokenizer: Any) -> Case:
    """Cut the page and count its tokens; no pixels are kept."""
    _check(config, shape)
    size = (config.image_w, config.image_h)
    if not config.use_synthetic_inputs:
        size = open_page(config.sample_image_path or "").size
    cut = plan(*size, config, shape)
    ids, mask, exact = tokens(cut, config, shape, tokenizer)
    return Case(config, cut, tuple(ids), tuple(mask), exact)


def inputs_of(
    case: Case, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, dict[str, Any]]:
    """`input_ids`, and `images`, `images_seq_mask`, `images_spatial_crop` for the model.

    `images_spatial_crop` stays on the CPU, as with the vendor: the model reads its values.
    """
    page = None
    if not case.config.use_synthetic_inputs and device.type != "meta":
        page = open_page(case.config.sample_image_path or "")
    return torch.tensor([case.ids], device=device), {
        "images": [views(page, case.plan, device, dtype)],
        "images_seq_mask": torch.tensor([case.mask], device=device),
        "images_spatial_crop": torch.tensor([case.plan.grid], dtype=torch.long),
    }


def stamp(config: AnalysisConfig) -> tuple[AnalysisConfig, tuple[int, int]]:
    """What a case depends on: the configuration, and the image file as it is now."""
    path = Path(config.sample_image_path or "")
    if config.use_synthetic_inputs or not path.is_file():
        return config, (0, 0)
    status = path.stat()
    return config, (status.st_mtime_ns, status.st_size)


def _check(config: AnalysisConfig, shape: OcrShape) -> None:
    """What is a property of the model must be given as the model has it."""
    own = {"patch_size": shape.sam.patch_size, "downsample_ratio": shape.sam.downsample_ratio}
    for name, value in own.items():
        if getattr(config, name) != value:
            raise _unfit(name, getattr(config, name), str(value))
    if isinstance(shape.encoder, QueryShape):
        sides = [side for side, _ in shape.encoder.queries]
        used = ("base_size", "image_size") if config.crop_mode else ("image_size",)
        for name in used:
            if getattr(config, name) not in sides:
                raise _unfit(name, getattr(config, name), " / ".join(map(str, sides)))


def _unfit(name: str, value: int, wanted: str) -> UsageError:
    return UsageError(
        f"AnalysisConfig.{name}",
        str(value),
        Text(f"{wanted}, which this model is built for", f"{wanted}（该模型的设定）"),
        Text(f"pass {name}={wanted.split(' ')[0]}", f"请传入 {name}={wanted.split(' ')[0]}"),
    )
