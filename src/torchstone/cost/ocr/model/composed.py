"""DeepSeek-OCR and DeepSeek-OCR-2, composed from parts that transformers ships.

The composed model does what the vendor's does: every view of the page goes through SAM and then
through a second encoder that takes SAM's features; the result is projected to the width of the
language model and put in the place of the image tokens. In DeepSeek-OCR the second encoder is
CLIP, and both encoders' features are joined; in DeepSeek-OCR-2 it is a decoder with learned
queries, and only its features are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torchstone.cost.ocr.model.parts import (
    clip_config,
    new_cache,
    parts,
    sam_config,
    second_config,
    text_config,
)
from torchstone.cost.ocr.model.shapes import ClipShape, OcrShape

Views = tuple[Tensor, Tensor]
"""Crops (N, 3, H, W) and the global view (1, 3, H, W) of one image, as the vendor orders them."""


class Output(NamedTuple):
    """What one pass gives: a score for every word of the vocabulary, and the key-value cache."""

    logits: Tensor
    past_key_values: Any


def build(
    shape: OcrShape,
    device: torch.device | str = "meta",
    dtype: torch.dtype = torch.bfloat16,
    flash: bool = True,
    seed: int = 0,
) -> DeepseekOCRForCausalLM:
    """The model in evaluation mode; on a real device its weights are random (from `seed`)."""
    with torch.device("meta"):
        model = DeepseekOCRForCausalLM(shape, "sdpa" if flash else "eager")
    model = model.eval().to(dtype)
    if torch.device(device).type != "meta":
        model = model.to_empty(device=device)
        _fill(model, seed)
    _remake_tables(model)
    return model.requires_grad_(False)


class DeepseekOCRForCausalLM(nn.Module):
    """The whole model, with the head that scores the vocabulary."""

    def __init__(self, shape: OcrShape, attention: str) -> None:
        super().__init__()
        self.model = DeepseekOCRModel(shape, attention)
        self.lm_head = nn.Linear(shape.text.hidden_size, shape.text.vocabulary, bias=False)

    def forward(
        self,
        input_ids: Tensor,
        images: Sequence[Views] | None = None,
        images_seq_mask: Tensor | None = None,
        images_spatial_crop: Tensor | Sequence[Sequence[int]] | None = None,
        past_key_values: Any = None,
        use_cache: bool = True,
    ) -> Output:
        if use_cache and past_key_values is None:
            past_key_values = new_cache()
        hidden = self.model(
            input_ids, images, images_seq_mask, images_spatial_crop, past_key_values
        )
        return Output(self.lm_head(hidden).float(), past_key_values)


class DeepseekOCRModel(nn.Module):
    """The vision encoders, the projector and the language model without its head."""

    def __init__(self, shape: OcrShape, attention: str) -> None:
        super().__init__()
        if isinstance(shape.encoder, ClipShape):
            text = parts().TextModel(text_config(shape.text, attention))
            self.sam_model = parts().SamEncoder(sam_config(shape.sam, attention))
            self.vision_model: nn.Module = ClipEncoder(shape.encoder, attention)
            self.image_newline = nn.Parameter(torch.empty(shape.text.hidden_size))
        else:
            whole = parts().SecondModel(second_config(shape, attention)).model
            text = whole.language_model
            self.sam_model = whole.vision_tower.sam_encoder
            self.vision_model = QueryEncoder(whole.vision_tower)
        self.embed_tokens = text.embed_tokens
        self.layers = text.layers
        self.norm = text.norm
        self.rotary_emb = text.rotary_emb
        self.projector = Projector(shape.projector_input, shape.text.hidden_size)
        self.view_seperator = nn.Parameter(torch.empty(shape.text.hidden_size))
        self._first = shape.generation == 1
        self._text_config = text.config

    def forward(
        self,
        input_ids: Tensor,
        images: Sequence[Views] | None,
        images_seq_mask: Tensor | None,
        images_spatial_crop: Tensor | Sequence[Sequence[int]] | None,
        past_key_values: Any,
    ) -> Tensor:
        embedded: Tensor = self.embed_tokens(input_ids)
        if images is not None and images_seq_mask is not None and images_spatial_crop is not None:
            embedded = torch.stack(
                [
                    row.masked_scatter(mask.unsqueeze(-1), self.page(views, grid).to(row.dtype))
                    for row, mask, views, grid in zip(
                        embedded, images_seq_mask, images, pairs(images_spatial_crop), strict=True
                    )
                ]
            )
        return self.read(embedded, past_key_values)

    def page(self, views: Views, grid: tuple[int, int]) -> Tensor:
        """The image tokens of one page: the crops, the global view, a separator."""
        crops, whole = views
        seen = [self._lay_out(self.see(crops), grid)] if max(grid) > 1 else []
        seen.append(self._lay_out(self.see(whole), (1, 1)))
        return torch.cat([*seen, self.view_seperator[None, :]])

    def see(self, view: Tensor) -> Tensor:
        """The projected features of views, (N, tokens, width)."""
        low = tensor_of(self.sam_model(view))
        high = self.vision_model(view, low)
        if self._first:
            high = torch.cat((high[:, 1:], low.flatten(2).permute(0, 2, 1)), dim=-1)
        projected: Tensor = self.projector(high)
        return projected

    def _lay_out(self, features: Tensor, grid: tuple[int, int]) -> Tensor:
        """Tokens of one line each: in DeepSeek-OCR as one picture with learned line breaks."""
        width = features.shape[2]
        if not self._first:
            return features.reshape(-1, width)
        columns, rows = grid
        side = int(features.shape[1] ** 0.5)
        tiles = features.view(rows, columns, side, side, width).permute(0, 2, 1, 3, 4)
        picture = tiles.reshape(rows * side, columns * side, width)
        breaks = self.image_newline[None, None, :].expand(rows * side, 1, width)
        return torch.cat([picture, breaks], dim=1).view(-1, width)

    def read(self, embedded: Tensor, past_key_values: Any) -> Tensor:
        """The language model without its head, over new tokens after those in the cache."""
        past = past_key_values.get_seq_length() if past_key_values is not None else 0
        positions = torch.arange(past, past + embedded.shape[1], device=embedded.device)[None, :]
        mask = parts().causal_mask(
            config=self._text_config,
            inputs_embeds=embedded,
            attention_mask=None,
            past_key_values=past_key_values,
        )
        rotary = self.rotary_emb(embedded, positions)
        hidden = embedded
        for layer in self.layers:
            hidden = layer(
                hidden,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=past_key_values,
                position_embeddings=rotary,
            )
        normal: Tensor = self.norm(hidden)
        return normal


class ClipEncoder(nn.Module):
    """CLIP's vision encoder without its last norm, fed with features instead of pixels.

    The patch convolution is part of the published weights and is never run.
    """

    def __init__(self, shape: ClipShape, attention: str) -> None:
        super().__init__()
        clip = parts().ClipModel(clip_config(shape, attention))
        self.embeddings = clip.embeddings
        self.pre_layrnorm = clip.pre_layrnorm
        self.encoder = clip.encoder

    def forward(self, pixel_values: Tensor, patch_embeds: Tensor) -> Tensor:
        batch, side = pixel_values.shape[0], patch_embeds.shape[-1]
        patches = patch_embeds.flatten(2).transpose(1, 2)
        first = self.embeddings.class_embedding.expand(batch, 1, -1)
        hidden = torch.cat([first, patches], dim=1) + self._positions(side)
        return tensor_of(self.encoder(inputs_embeds=self.pre_layrnorm(hidden)))

    def _positions(self, side: int) -> Tensor:
        table: Tensor = self.embeddings.position_embedding(self.embeddings.position_ids)[0]
        known = int((table.shape[0] - 1) ** 0.5)
        if side == known:
            return table[None]
        grid = table[1:].view(1, known, known, -1).permute(0, 3, 1, 2).float()
        grid = nn.functional.interpolate(
            grid, size=(side, side), mode="bicubic", antialias=True, align_corners=False
        )
        patches = grid.permute(0, 2, 3, 1).reshape(side * side, -1).to(table.dtype)
        return torch.cat([table[:1], patches])[None]


class QueryEncoder(nn.Module):
    """The second encoder of DeepSeek-OCR-2: image tokens first, then learned queries."""

    def __init__(self, tower: Any) -> None:
        super().__init__()
        self.encoder = tower.vision_encoder
        self.query_768_resolution = tower.query_768_resolution
        self.query_1024_resolution = tower.query_1024_resolution

    def forward(self, pixel_values: Tensor, patch_embeds: Tensor) -> Tensor:
        patches = patch_embeds.flatten(2).transpose(1, 2)
        batch, count = pixel_values.shape[0], patches.shape[1]
        few = count <= self.query_768_resolution.weight.shape[0]
        table: Tensor = (self.query_768_resolution if few else self.query_1024_resolution).weight
        joined = torch.cat([patches, table[None].expand(batch, -1, -1)], dim=1)
        return tensor_of(self.encoder(inputs_embeds=joined, num_patches=count))[:, count:]


class Projector(nn.Module):
    """One matrix from the width of the vision features to that of the language model."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.layers = nn.Linear(width, out)

    def forward(self, features: Tensor) -> Tensor:
        projected: Tensor = self.layers(features)
        return projected


def pairs(grid: Tensor | Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Crops across and down of every image, as plain numbers."""
    rows = grid.tolist() if isinstance(grid, Tensor) else grid
    return [(int(row[0]), int(row[1])) for row in rows]


def tensor_of(output: Any) -> Tensor:
    """The tensor itself, where a part wraps its output."""
    if isinstance(output, Tensor):
        return output
    hidden: Tensor = output.last_hidden_state
    return hidden


def _fill(model: nn.Module, seed: int) -> None:
    """Random weights of a usual size: what is computed is meaningless, how fast it is is not."""
    device = next(model.parameters()).device
    source = torch.Generator(device=device).manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1 or not name.endswith(("weight", "bias")):
                weight.normal_(0.0, 0.02, generator=source)
            else:
                weight.fill_(1.0 if name.endswith("weight") else 0.0)


def _remake_tables(model: nn.Module) -> None:
    """Tables that are computed, not stored: casting and moving the model has spoilt them."""
    for part in model.modules():
        known: Any = part
        if hasattr(part, "compute_default_rope_parameters"):
            with torch.device(known.inv_freq.device):
                fresh, _ = known.compute_default_rope_parameters(known.config)
            known.inv_freq = fresh
            known.original_inv_freq = fresh.clone()
        if isinstance(getattr(part, "position_ids", None), Tensor):
            old = known.position_ids
            known.position_ids = torch.arange(old.shape[-1], device=old.device).expand(1, -1)
