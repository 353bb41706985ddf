"""The closed forms against arithmetic by hand."""

from __future__ import annotations

import pytest

from torchstone.cost.ocr.analysis.formulas import (
    encoder_flops,
    estimate_decode_flops_per_token,
    estimate_prefill_flops_total,
    projector_flops,
    sam_flops,
    text_arguments,
)
from torchstone.cost.ocr.model.shapes import DEEPSEEK_OCR

TEXT = text_arguments(DEEPSEEK_OCR.text)


@pytest.mark.parametrize(
    ("length", "known"), [(273, 3.180355e11), (903, 1.086916e12), (1024, 1.240173e12)]
)
def test_prefill_of_the_published_model(length: int, known: float) -> None:
    d = 1280
    by_hand = 12 * (8 * length * d * d + 4 * length * length * d) + 6 * length * d * 6848
    by_hand += 11 * (2 * length * d * 64 + 6 * length * d * 896 * 8) + 2 * length * d * 129280
    assert estimate_prefill_flops_total(seq_len=length, **TEXT) == by_hand
    assert by_hand == pytest.approx(known, rel=2e-6)


def test_a_plain_decoder() -> None:
    # four square projections, two products of attention, three matrices of a gated feed-forward
    assert estimate_prefill_flops_total(8, 32, 2, 5) == 2 * 5 * (
        4 * 2 * 8 * 8 + 4 * 5 * 8 + 6 * 8 * 32
    )
    assert estimate_prefill_flops_total(8, 32, 2, 5, gated=False) == 2 * 5 * (
        4 * 2 * 8 * 8 + 4 * 5 * 8 + 4 * 8 * 32
    )


def test_grouped_keys_and_wide_heads() -> None:
    got = estimate_prefill_flops_total(8, 0, 1, 1, n_heads=4, n_kv_heads=1, head_dim=3)
    assert got == 2 * 8 * 12 * 2 + 2 * 8 * 3 * 2 + 4 * 12


def test_the_head_may_score_the_last_token_only() -> None:
    every = estimate_prefill_flops_total(8, 32, 1, 5, vocab_size=100)
    last = estimate_prefill_flops_total(8, 32, 1, 5, vocab_size=100, lm_head_tokens=1)
    assert every - last == 4 * 2 * 8 * 100


def test_a_decode_step_is_the_last_row_of_a_prefill() -> None:
    step = estimate_decode_flops_per_token(ctx_len=10, **TEXT)
    first = estimate_decode_flops_per_token(ctx_len=1, **TEXT)
    assert first == estimate_prefill_flops_total(seq_len=1, **TEXT)
    assert step - first == 12 * 4 * 9 * 1280


def test_vision_of_the_published_model() -> None:
    assert sam_flops(DEEPSEEK_OCR.sam, 1024) == pytest.approx(9.769092e11, rel=1e-6)
    assert sam_flops(DEEPSEEK_OCR.sam, 640) == pytest.approx(3.256208e11, rel=1e-6)
    assert encoder_flops(DEEPSEEK_OCR, 1024) == pytest.approx(1.617157e11, rel=1e-6)
    assert encoder_flops(DEEPSEEK_OCR, 640) == pytest.approx(6.200475e10, rel=1e-6)
    assert projector_flops(DEEPSEEK_OCR, 1024) == 2 * 256 * 2048 * 1280
    assert projector_flops(DEEPSEEK_OCR, 640) == 2 * 100 * 2048 * 1280
