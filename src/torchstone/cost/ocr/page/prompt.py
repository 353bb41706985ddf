"""The token ids of a prompt with a page in it, and which of them are image tokens."""

from __future__ import annotations

import math
from typing import Any

from torchstone.cost.ocr.config import PROMPT, AnalysisConfig
from torchstone.cost.ocr.model.shapes import OcrShape
from torchstone.cost.ocr.page.images import Plan

BEGIN = 0
"""The vendor puts this token before everything."""
_DEFAULT_TEXT = (201, 128820, 21842, 270, 4940, 304, 2121, 7919, 16)
"""What the published tokenizer makes of the default prompt after `<image>`."""
_CHARACTERS = 4
"""Characters of English to a token, where there is no tokenizer to ask."""


def queries(side: int, config: AnalysisConfig) -> int:
    """Image tokens along one side of a view."""
    return math.ceil((side // config.patch_size) / config.downsample_ratio)


def image_tokens(plan: Plan, config: AnalysisConfig, shape: OcrShape) -> int:
    """All image tokens of a page: the global view, a separator, and the crops laid out as one.

    In DeepSeek-OCR every line of tokens ends with a line break; in DeepSeek-OCR-2 it does not.
    """
    end = 1 if shape.generation == 1 else 0
    own = queries(plan.view, config)
    count = own * (own + end) + 1
    if plan.crops:
        columns, rows = plan.grid
        each = queries(plan.crop, config)
        count += (each * columns + end) * each * rows
    return count


def tokens(
    plan: Plan, config: AnalysisConfig, shape: OcrShape, tokenizer: Any
) -> tuple[list[int], list[bool], bool]:
    """Ids, the mask of image tokens, and whether the number of text tokens is exact."""
    before, after = config.prompt.strip().split("<image>")
    first, exact_first = _text(before, config, tokenizer)
    last, exact_last = _text(after, config, tokenizer)
    count = image_tokens(plan, config, shape)
    largest = shape.text.vocabulary - 1
    ids = [BEGIN, *first, *[shape.image_token] * count, *last]
    mask = [False] * (1 + len(first)) + [True] * count + [False] * len(last)
    return [min(item, largest) for item in ids], mask, exact_first and exact_last


def _text(piece: str, config: AnalysisConfig, tokenizer: Any) -> tuple[list[int], bool]:
    if not piece:
        return [], True
    if tokenizer is not None:
        return list(tokenizer.encode(piece, add_special_tokens=False)), True
    if config.prompt.strip() == PROMPT:
        return list(_DEFAULT_TEXT), True
    return [1] * math.ceil(len(piece) / _CHARACTERS), False
