"""MFU is FLOPs / (seconds x dense peak), with static FLOPs before closed forms."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from torchstone.core.errors import TorchstoneError, UsageError
from torchstone.cost.ocr.analysis.formulas import (
    estimate_decode_flops_per_token,
    estimate_prefill_flops_total,
    text_arguments,
)
from torchstone.cost.ocr.measured.mfu import CLOSED, MOVED, STATIC, compute_stage_mfu
from torchstone.cost.ocr.model.shapes import DEEPSEEK_OCR

TEXT = text_arguments(DEEPSEEK_OCR.text)


def test_from_closed_forms() -> None:
    result = compute_stage_mfu(100, 200, 50, 64, 3, 128, 512, 4, 2.0, vision_flops=1e10)
    prefill = estimate_prefill_flops_total(128, 512, 4, 64)
    decode = sum(estimate_decode_flops_per_token(128, 512, 4, 64 + i) for i in (1, 2, 3))
    assert result.prefill == pytest.approx(prefill / (0.1 * 2e12))
    assert result.decode == pytest.approx(decode / (0.2 * 2e12))
    assert result.vision == pytest.approx(1e10 / (0.05 * 2e12))
    assert result.model_level == pytest.approx((prefill + decode + 1e10) / (0.35 * 2e12))
    assert result.stages["prefill"].source == CLOSED


def test_static_figures_are_preferred(letter_report: dict[str, Any]) -> None:
    changed = copy.deepcopy(letter_report)
    changed["stages"]["prefill"]["flops"] *= 2
    result = compute_stage_mfu(
        100, 200, 50, 913, 0, 1, 1, 1, peak_tflops="h100", static_report=changed
    )
    share = result.stages["prefill"]
    assert share.source == STATIC
    assert share.flops == changed["stages"]["prefill"]["flops"]
    assert result.peak_flops == 989.4e12
    assert "H100" in result.peak_source.en
    assert result.prefill == share.flops / (0.1 * 989.4e12)
    vision = sum(changed["stages"][name]["flops"] for name in ("sam", "clip", "projector"))
    assert result.stages["vision"].flops == vision


def test_other_lengths_are_reached_with_the_closed_form(letter_report: dict[str, Any]) -> None:
    result = compute_stage_mfu(
        100, 200, 50, 2000, 10, peak_tflops=100.0, static_report=letter_report
    )
    assert result.stages["prefill"].source == MOVED
    assert result.stages["prefill"].flops == estimate_prefill_flops_total(seq_len=2000, **TEXT)
    steps = [estimate_decode_flops_per_token(ctx_len=2000 + i, **TEXT) for i in range(1, 11)]
    assert result.stages["decode"].flops == pytest.approx(sum(steps), rel=1e-12)


@pytest.mark.parametrize(
    ("more", "context"),
    [
        ({"ctx_len_mode": "fixed", "ctx_len_fixed": 77}, 77),
        ({"ctx_len_mode": "max", "model_window": 4096}, 4096),
        ({"ctx_len_mode": "max"}, 14),
        ({}, 12.5),
    ],
)
def test_context_of_a_step(more: dict[str, Any], context: float) -> None:
    result = compute_stage_mfu(1, 1, 1, 10, 4, 8, 16, 2, 1.0, **more)
    base = estimate_decode_flops_per_token(8, 16, 2, 1)
    assert result.stages["decode"].flops == pytest.approx(4 * (base + 2 * 4 * 8 * (context - 1)))


def test_single_vision_stages(letter_report: dict[str, Any]) -> None:
    times = {"sam": 40.0, "clip": 9.0, "projector": 1.0}
    result = compute_stage_mfu(
        1, 1, 50, 913, 1, peak_tflops=10.0, static_report=letter_report, stage_ms=times
    )
    sam = letter_report["stages"]["sam"]["flops"]
    assert result.stages["sam"].mfu == pytest.approx(sam / (0.04 * 1e13))
    with pytest.raises(UsageError, match="stage_ms: got 'vit'"):
        compute_stage_mfu(
            1, 1, 1, 9, 1, peak_tflops=1.0, static_report=letter_report, stage_ms={"vit": 1.0}
        )


def test_nothing_done_is_no_share() -> None:
    result = compute_stage_mfu(5, 0, 0, 10, 0, 8, 16, 2, 1.0)
    assert (result.decode, result.vision) == (0.0, 0.0)
    assert result.model_level == result.prefill > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prefill_ms": 0}, "prefill_ms: got 0"),
        ({"decode_ms": -1}, "decode_ms: got -1"),
        ({"vision_ms": math.nan}, "vision_ms: got nan"),
        ({"prefill_len": -1}, "prefill_len: got -1"),
        ({"new_tokens": 1.5}, r"new_tokens: got 1\.5"),
        ({"d_model": None}, "d_model: got None"),
        ({"peak_tflops": None}, "peak_tflops: got None"),
        ({"peak_tflops": 0}, "peak_tflops: got 0"),
        ({"peak_tflops": "h1000"}, "h1000"),
        ({"ctx_len_mode": "mean"}, "mean"),
        ({"ctx_len_mode": "fixed"}, "ctx_len_fixed"),
    ],
)
def test_wrong_values_are_named(change: dict[str, Any], said: str) -> None:
    values = {
        "prefill_ms": 1, "decode_ms": 1, "vision_ms": 1, "prefill_len": 4, "new_tokens": 2,
        "d_model": 8, "d_ff": 16, "n_layers": 2, "peak_tflops": 1.0, **change,
    }  # fmt: skip
    with pytest.raises(TorchstoneError, match=said):
        compute_stage_mfu(**values)


def test_a_report_without_dimensions_serves_its_own_lengths_only(
    letter_report: dict[str, Any],
) -> None:
    bare = {**letter_report, "metadata": {"seq_len": 913, "ctx_len": 914}}
    assert compute_stage_mfu(1, 1, 1, 913, 1, peak_tflops=1.0, static_report=bare).prefill > 0
    with pytest.raises(UsageError, match="a report at the measured lengths"):
        compute_stage_mfu(1, 1, 1, 100, 1, peak_tflops=1.0, static_report=bare)
