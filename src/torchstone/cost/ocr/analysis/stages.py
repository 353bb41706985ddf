"""The five stages: which modules belong to each, and what each is called with on its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.core.text import Text
from torchstone.cost.ocr.analysis.formulas import (
    encoder_flops,
    estimate_decode_flops_per_token,
    estimate_prefill_flops_total,
    image_side,
    projector_flops,
    query_count,
    sam_flops,
    text_arguments,
)
from torchstone.cost.ocr.model.parts import filled_cache
from torchstone.cost.ocr.model.shapes import OcrShape, QueryShape
from torchstone.cost.ocr.page.images import Plan

STAGES = ("sam", "clip", "projector", "prefill", "decode")
_WHOLE = Text("the global view", "全局视图")
STAGE_MODULES: Mapping[str, tuple[str, ...]] = {
    "sam": ("sam_model",),
    "clip": ("vision_model",),
    "projector": ("projector",),
    "prefill": ("embed_tokens", "layers", "norm"),
    "decode": ("lm_head",),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call that a stage is counted on."""

    label: Text
    module: nn.Module
    inputs: Any


@dataclass(frozen=True, slots=True)
class Work:
    """What a stage is asked to do: the views of the page, the tokens of the text."""

    plan: Plan
    length: int
    """Tokens of the prefill, and of the context of a decode step."""
    dtype: torch.dtype

    @property
    def views(self) -> list[tuple[Text, int, int]]:
        """Label, how many and side of each kind of view."""
        whole = (_WHOLE, 1, self.plan.view)
        count = self.plan.crops
        crops = (Text(f"{count} crops", f"{count} 个裁剪块"), count, self.plan.crop)
        return [whole, crops] if count else [whole]


def locate(model: nn.Module, name: str) -> str | None:
    """Where a stage's module stands: by itself, or inside the model's `model`."""
    known = {path for path, _ in model.named_modules()}
    return next((path for path in (name, f"model.{name}") if path in known), None)


def module_at(model: nn.Module, name: str) -> nn.Module | None:
    """A stage's module, if the model has it."""
    path = locate(model, name)
    return None if path is None else model.get_submodule(path)


def parameters(modules: Iterable[nn.Module]) -> int:
    """Parameters of some modules, shared ones once."""
    found = {id(item): item.numel() for module in modules for item in module.parameters()}
    return sum(found.values())


def calls(stage: str, model: nn.Module, shape: OcrShape, work: Work) -> list[Call]:
    """What a stage is counted on by itself: on the meta device, with inputs of the right shapes.

    Empty when the model has no such module.
    """
    if stage == "prefill":
        size = work.length
        label = Text(f"{size} tokens", f"{size} 个 token")
        return [Call(label, model, {"input_ids": _ids(size)})]
    if stage == "decode":
        cache = filled_cache(shape.text, work.length - 1, torch.device("meta"), work.dtype)
        inputs = {"input_ids": _ids(1), "past_key_values": cache}
        before = work.length - 1
        label = Text(f"1 token after {before}", f"{before} 个 token 之后的 1 个 token")
        return [Call(label, model, inputs)]
    module = module_at(model, STAGE_MODULES[stage][0])
    if module is None:
        return []
    return [
        Call(label, module, _inputs(stage, shape, count, side, work.dtype))
        for label, count, side in work.views
    ]


def _ids(length: int) -> torch.Tensor:
    return torch.empty((1, length), dtype=torch.long, device="meta")


def _inputs(
    stage: str, shape: OcrShape, count: int, side: int, dtype: torch.dtype
) -> tuple[torch.Tensor, ...]:
    def empty(*size: int) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device="meta")

    pixels = empty(count, 3, side, side)
    if stage == "sam":
        return (pixels,)
    grid = image_side(shape, side)
    if stage == "clip":
        return (pixels, empty(count, shape.sam.downsample_channels[1], grid, grid))
    tokens = grid * grid
    if isinstance(shape.encoder, QueryShape):
        tokens = query_count(shape.encoder, tokens)
    return (empty(count, tokens, shape.projector_input),)


def analytic_flops(stage: str, shape: OcrShape, work: Work) -> float:
    """The closed form of a stage for the same work."""
    text = text_arguments(shape.text)
    if stage == "prefill":
        return estimate_prefill_flops_total(seq_len=work.length, **text)
    if stage == "decode":
        return estimate_decode_flops_per_token(ctx_len=work.length, **text)
    total = 0
    for _, count, side in work.views:
        if stage == "sam":
            total += count * sam_flops(shape.sam, side)
        elif stage == "clip":
            total += count * encoder_flops(shape, side)
        else:
            total += count * projector_flops(shape, side)
    return float(total)
