"""Rounding against ml_dtypes, bit for bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from torchstone.runtime.number_formats import (
    BF16,
    E2M1,
    E2M3,
    E3M2,
    E4M3,
    E5M2,
    FP16,
    INT8,
    TF32,
    NumberFormat,
)
from torchstone.tensors.formats import all_formats, round_to_format

NUMPY = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
ELEMENTS = (FP16, BF16, E5M2, E4M3, E3M2, E2M3, E2M1)
PATTERNS = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16)


def reference(values: np.ndarray, element: NumberFormat) -> np.ndarray:
    """ml_dtypes within the range; beyond it, what `round_to_format` promises without saturation."""
    with np.errstate(over="ignore"):
        inside = np.clip(values, -element.largest, element.largest)
        rounded = inside.astype(NUMPY[element.name]).astype(np.float32)
    size = np.abs(values).astype(np.float64)
    over = (
        size >= element.overflow_from if element.overflows_at_tie else size > element.overflow_from
    )
    rounded = np.where(over, np.copysign(np.inf, values), rounded)
    return np.where(np.isnan(values), np.nan, rounded).astype(np.float32)


def assert_same(values: np.ndarray, element: NumberFormat) -> None:
    found = round_to_format(torch.from_numpy(values), element, saturate=False).numpy()
    wanted = reference(values, element)
    same = (found.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(found) & np.isnan(wanted))
    assert same.all(), (values[~same][:5], found[~same][:5], wanted[~same][:5])


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda item: item.name)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_every_16_bit_pattern(element: NumberFormat, dtype: torch.dtype) -> None:
    assert_same(PATTERNS.view(dtype).float().numpy(), element)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda item: item.name)
def test_every_pattern_of_the_format_is_its_own_image(element: NumberFormat) -> None:
    kind = NUMPY[element.name]
    if np.dtype(kind).itemsize == 2:
        patterns = np.arange(1 << 16, dtype=np.uint16).view(kind)
    else:
        bits = 1 + element.exponent_bits + element.mantissa_bits
        patterns = np.arange(1 << bits, dtype=np.uint8).view(kind)
    values = patterns.astype(np.float32)
    found = round_to_format(torch.from_numpy(values), element, saturate=False).numpy()
    assert np.array_equal(found, values, equal_nan=True)
    # -0 stays -0
    assert np.array_equal(np.signbit(found[values == 0]), np.signbit(values[values == 0]))


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda item: item.name)
def test_ties_and_their_neighbours(element: NumberFormat) -> None:
    kind = NUMPY[element.name]
    size = (
        1 << 15
        if np.dtype(kind).itemsize == 2
        else 1 << (element.exponent_bits + element.mantissa_bits)
    )
    step = np.uint16 if np.dtype(kind).itemsize == 2 else np.uint8
    numbers = np.arange(size, dtype=step).view(kind).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    ties = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
    near = [ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(np.inf))]
    over = np.array([element.overflow_from, element.largest, np.inf, np.nan], np.float32)
    values = np.concatenate([*near, over, np.nextafter(over, np.float32(0))]).astype(np.float32)
    assert_same(np.concatenate([values, -values]), element)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda item: item.name)
def test_random_fp32_patterns(element: NumberFormat) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, dtype=np.uint32)
    values = bits.view(np.float32)
    assert_same(values[~np.isnan(values)], element)


def test_fp64_is_rounded_once() -> None:
    """Through fp32 a value just above a tie would be rounded down; numpy rounds it once."""
    ties = 1.0 + (2 * np.arange(1000) + 1) * 2.0**-11 + 2.0**-40
    found = round_to_format(torch.from_numpy(ties), FP16, saturate=False).numpy()
    assert np.array_equal(found, ties.astype(np.float16).astype(np.float64))
    twice = ties.astype(np.float32).astype(np.float16).astype(np.float64)
    assert not np.array_equal(found, twice)


def test_tf32_keeps_ten_mantissa_bits() -> None:
    bits = np.random.default_rng(1).integers(0, 0x7F000000, 1 << 16, dtype=np.uint32)
    values = bits.view(np.float32)
    # nearest even on the lower 13 bits of an fp32 pattern
    rounded = ((bits + 0xFFF + ((bits >> 13) & 1)) >> 13 << 13).astype(np.uint32).view(np.float32)
    found = round_to_format(torch.from_numpy(values), TF32, saturate=False).numpy()
    assert np.array_equal(found, rounded)


def test_saturation_is_explicit() -> None:
    values = torch.tensor([465.0, 1e9, torch.inf, -torch.inf])
    assert round_to_format(values, E4M3, saturate=True).tolist() == [448, 448, 448, -448]
    assert round_to_format(values, E4M3, saturate=False).tolist() == [
        torch.inf, torch.inf, torch.inf, -torch.inf,
    ]  # fmt: skip
    assert round_to_format(torch.tensor([464.0]), E4M3, saturate=False).tolist() == [448]
    assert torch.isnan(round_to_format(torch.tensor([torch.nan]), E4M3, saturate=True)).all()


def test_integers_round_to_even_and_stay_symmetric() -> None:
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, 200.0, -200.0])
    assert round_to_format(values, INT8, saturate=True).tolist() == [0, 2, 2, 0, 127, -127]


def test_the_formats_of_the_specification_exist() -> None:
    wanted = "fp16 bf16 tf32 e4m3 e5m2 mxfp8 mxfp6 mxfp4 nvfp4 int8 int4".split()
    assert set(wanted) <= set(all_formats())
