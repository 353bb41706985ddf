"""The public pieces follow the right definitions, checked against real casts."""

from __future__ import annotations

import math

import pytest
import torch

from torchstone.core.errors import UsageError
from torchstone.runtime.number_formats import FORMATS, dtype_of, format_of
from torchstone.watch import (
    AdaptiveThreshold,
    detect_distortion,
    detect_drift,
    detect_overflow,
    detect_underflow,
)


@pytest.mark.parametrize("name", ["fp16", "bf16", "e5m2"])
def test_limits_are_those_of_the_real_cast(name: str) -> None:
    number_format = FORMATS[name]
    dtype = dtype_of(number_format)

    def cast(value: float) -> float:
        return float(torch.tensor(value, dtype=torch.float64).to(dtype).double())

    assert cast(number_format.largest) == number_format.largest
    limit = torch.tensor(number_format.overflow_from, dtype=torch.float32)
    below = float(torch.nextafter(limit, torch.tensor(0.0)))
    assert math.isfinite(cast(below))
    assert not math.isfinite(cast(number_format.overflow_from))
    assert cast(number_format.flushes_at) == 0
    assert cast(number_format.flushes_at * 1.01) == number_format.smallest_subnormal


def test_underflow_is_measured_before_the_cast() -> None:
    x = torch.tensor([1e-9, 2.0**-25, 2.0**-24, 1.0, 0.0, -1e-9])
    assert detect_underflow(x, torch.float16) == pytest.approx(3 / 5)
    lost = (x != 0) & (x.half() == 0)
    assert detect_underflow(x, "fp16") == pytest.approx(int(lost.sum()) / 5)
    assert detect_underflow(x, "fp16", scale=2.0**20) == 0.0
    assert detect_underflow(torch.zeros(3), "fp16") == 0.0
    with pytest.warns(UserWarning, match="before the cast"):
        assert math.isnan(detect_underflow(x.half(), torch.float16))


def test_near_overflow_stands_apart_from_overflow() -> None:
    near = detect_overflow(torch.tensor([61000.0], dtype=torch.float16))
    assert near
    assert near.near
    assert not near.overflow
    over = detect_overflow(torch.tensor([65520.0, 1.0]), torch.float16)
    assert over.overflow
    assert over.ratio == 0.5
    assert not detect_overflow(torch.tensor([1e30], dtype=torch.bfloat16))
    assert detect_overflow(torch.tensor([300.0]), "e4m3", scale=2.0).overflow


def test_distortion_is_one_minus_the_cosine() -> None:
    x = torch.randn(1000)
    assert detect_distortion(x, torch.float32) == pytest.approx(0.0, abs=1e-12)
    expected = 1 - torch.nn.functional.cosine_similarity(
        x.double(), x.to(torch.float8_e5m2).double(), 0
    )
    assert detect_distortion(x, "e5m2") == pytest.approx(float(expected), rel=1e-6)
    assert detect_distortion(x, -x) == pytest.approx(2.0)
    assert detect_distortion(torch.full((4,), 1e-12), "fp16") == 1.0
    with pytest.raises(UsageError, match="one shape"):
        detect_distortion(x, x[:3])


def test_drift_is_another_word() -> None:
    usual = {"mean": 1.0, "std": 0.5}
    assert detect_drift(usual, usual) == 0.0
    assert detect_drift({"mean": 3.0, "std": 0.5}, usual) == pytest.approx(4.0)
    with pytest.raises(UsageError, match="mean and std"):
        detect_drift({"mean": 1.0}, usual)


def test_formats_by_name_and_dtype() -> None:
    assert format_of(torch.float16).name == "fp16"
    with pytest.raises(UsageError, match="number format"):
        format_of(torch.int8)


def test_an_adaptive_threshold_learns_and_keeps_learning() -> None:
    threshold = AdaptiveThreshold(warmup_steps=50)
    generator = torch.Generator().manual_seed(0)
    for step in range(400):
        value = float(torch.exp(0.2 * torch.randn((), generator=generator)) * (1 + step / 100))
        if step < 50:
            assert not threshold.is_anomaly(1e9)
            assert threshold.baseline is None
        threshold.update(value)
    assert threshold.step == 400
    assert set(threshold.baseline or ()) == {"mean", "std", "max", "min"}
    assert threshold.is_anomaly(50.0)
    assert not threshold.is_anomaly(5.0), "the level of now, not of the warm-up"
    assert threshold.is_anomaly(float("nan"))
    for _ in range(5000):
        threshold.update(1.0)
    assert len(threshold.history) <= 1000
    assert not threshold.is_anomaly(1.0 + 1e-7), "a constant series, and rounding"
    with pytest.raises(UsageError):
        AdaptiveThreshold(0)


@pytest.mark.parametrize(("sigmas", "anomaly"), [(2, False), (4, True), (6, True), (-5, True)])
def test_an_adaptive_threshold_judges_by_standard_deviations(
    sigmas: int, anomaly: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "torchstone.watch")
    threshold = AdaptiveThreshold(warmup_steps=100)
    for step in range(100):
        threshold.update(10.0 + (1 if step % 2 else -1))  # mean 10, standard deviation 1
    assert threshold.is_anomaly(10.0 + sigmas) is anomaly
    said = caplog.text
    assert said.count("[Monitor] Baseline established: {'mean': 10.0, 'std': 1.0") == 1


def test_distortion_of_two_dictionaries_of_statistics() -> None:
    usual = {"mean": 0.0, "std": 1.0}
    assert detect_distortion(usual, usual) == 0
    assert detect_distortion({"mean": 4.0, "std": 1.0}, usual) == pytest.approx(4)
    with pytest.raises(UsageError, match="same form"):
        detect_distortion(usual, torch.float16)
