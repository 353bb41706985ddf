"""The histogram path against casting every value."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchstone.tensors.analysis.errors.by_format import figures_by_format
from torchstone.tensors.analysis.errors.figures import measure_matrix
from torchstone.tensors.analysis.values import distribution as module
from torchstone.tensors.analysis.values import passes
from torchstone.tensors.analysis.values.accept import accept_tensor
from torchstone.tensors.analysis.values.distribution import read_distribution
from torchstone.tensors.formats import all_formats

PLAIN = tuple(f for f in all_formats().values() if f.granularity == "tensor")


def tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(400_000, generator=generator)
    tail = torch.exp(3 * torch.randn(400_000, generator=generator)) * 1e-6
    powers = torch.exp2(torch.randint(-30, 18, (400_000,), generator=generator).float())
    return {
        "normal": normal,
        "heavy tail": tail,
        "powers of two": powers * torch.sign(normal),
        "edges": torch.tensor([2.0**-25, 2.0**-10, 464.0, 65520.0, 65519.0]).repeat(60_000),
        "bf16 in fp32": normal.bfloat16().float(),
        "outliers": torch.where(
            torch.rand(400_000, generator=generator) < 1e-3, normal * 1e4, normal
        ),
    }


@pytest.mark.parametrize("name", list(tensors()))
def test_shares_are_exact_and_errors_close(name: str) -> None:
    x = tensors()[name]
    found = read_distribution(accept_tensor(x, name))
    assert not found.exact
    rows = x[:512].reshape(1, -1)
    for figures, item in zip(figures_by_format(found, PLAIN, rows), PLAIN, strict=True):
        whole = measure_matrix(
            x.reshape(1, -1), item, "tensor", item.scale, figures.how, float(x.abs().max())
        )
        assert figures.flushed == whole.flushed, item.name
        assert figures.subnormal == whole.subnormal, item.name
        assert figures.overflow == whole.overflow, item.name
        if item.is_wide:
            continue  # measured on a sample, with its spread
        # values that sit on a few points are not spread evenly over their bins
        if name in ("normal", "heavy tail", "outliers"):
            assert figures.sqnr_db == pytest.approx(whole.sqnr_db, abs=0.05), item.name
            assert figures.median_error == pytest.approx(whole.median_error, rel=0.02, abs=1e-6)


def test_wide_formats_are_measured_within_their_spread() -> None:
    x = tensors()["normal"]
    found = read_distribution(accept_tensor(x, "x"))
    items = tuple(f for f in PLAIN if f.is_wide)
    for figures, item in zip(
        figures_by_format(found, items, x[:64].reshape(1, -1)), items, strict=True
    ):
        whole = measure_matrix(x.reshape(1, -1), item, "tensor", item.scale, figures.how)
        assert figures.spread_db is not None
        assert abs(figures.sqnr_db - whole.sqnr_db) < 2 * figures.spread_db


def test_bf16_values_in_fp32_are_seen_to_be_exact() -> None:
    found = read_distribution(accept_tensor(tensors()["bf16 in fp32"], "x"))
    (figures,) = figures_by_format(found, (all_formats()["bf16"],), torch.zeros(1, 1))
    assert found.holds_16_bits
    assert figures.largest_error == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_16_bit_tensors_are_counted_pattern_by_pattern(dtype: torch.dtype) -> None:
    x = (tensors()["heavy tail"] * 1e3).to(dtype)
    found = read_distribution(accept_tensor(x, "x"))
    assert found.exact
    for figures, item in zip(
        figures_by_format(found, PLAIN, x[:64].float().reshape(1, -1)), PLAIN, strict=True
    ):
        whole = measure_matrix(
            x.float().reshape(1, -1), item, "tensor", item.scale, figures.how, found.largest
        )
        assert figures.sqnr_db == pytest.approx(whole.sqnr_db, abs=1e-6), item.name
        assert figures.median_error == pytest.approx(whole.median_error, abs=1e-12), item.name
        assert figures.flushed == whole.flushed


def test_without_a_compiler_the_counts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tensors()["heavy tail"].clone()
    x[:5] = torch.tensor([0.0, -0.0, torch.nan, torch.inf, -torch.inf])
    first = read_distribution(accept_tensor(x, "x"))
    limits = np.array([2.0**-25, 1e-3, 7.0], np.float32)
    in_c = first.count_up_to(limits)
    monkeypatch.setattr(passes, "_library", lambda: None)
    second = read_distribution(accept_tensor(x, "x"))
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.counts, second.counts)
    assert np.array_equal(in_c, second.count_up_to(limits))
    assert (first.zeros, first.nans, first.infinities, first.largest) == (
        second.zeros, second.nans, second.infinities, second.largest,
    ) == (2, 1, 2, float(x[x.isfinite()].abs().max()))  # fmt: skip


def test_small_tensors_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tensors()["heavy tail"][:1000]
    small = read_distribution(accept_tensor(x, "x"))
    assert small.exact
    monkeypatch.setattr(module, "SMALL", 0)
    large = read_distribution(accept_tensor(x, "x"))
    assert not large.exact
    limits = np.quantile(np.abs(x.numpy()), [0.1, 0.5, 0.9]).astype(np.float32)
    assert np.array_equal(small.count_up_to(limits), large.count_up_to(limits))
