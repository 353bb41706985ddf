"""MFU and HFU by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.cost.toys import ROUND, step
from torchstone.core.errors import UsageError
from torchstone.cost.on_devices.utilization import mfu
from torchstone.cost.records.ledger import FORWARD, Cost, Failure, Key, Tally
from torchstone.runtime.devices import device


def test_by_hand() -> None:
    found = mfu(step(), 16.0, ROUND)
    assert found.model_flops == 1000 + 600 + 2000 + 1200
    assert found.hardware_flops == 4800 + 1000 + 300
    assert found.available_flops == 16_000.0
    assert (found.mfu, found.hfu) == (0.3, 0.38125)
    assert not found.remarks


def test_devices_and_passes() -> None:
    found = mfu(step(), 16.0, ROUND, count=4, passes=2)
    assert (found.mfu, found.hfu) == (0.15, 0.190625)


def test_llama_on_h100() -> None:
    # 98,814,312,579,072 FLOP in a quarter of a second of 989.4 TFLOP/s
    entries = {Key("", FORWARD, "aten.mm", "bfloat16"): Tally(1, flops=98_814_312_579_072)}
    found = mfu(Cost(entries, {}), 0.25, "h100")
    assert found.mfu == pytest.approx(0.39949, abs=1e-5)
    assert found.mfu == found.hfu


def test_a_report_will_do() -> None:
    assert mfu(SimpleNamespace(cost=step()), 16.0, ROUND).mfu == 0.3


def test_the_peak_is_that_of_the_main_format() -> None:
    entries = {
        Key("a", FORWARD, "aten.mm", "float32"): Tally(1, flops=1),
        Key("a", FORWARD, "aten.mm", "bfloat16"): Tally(1, flops=2),
    }
    assert mfu(Cost(entries, {}), 1.0, "h100").peak.format == "bfloat16"
    assert mfu(Cost(entries, {}), 1.0, "h100", dtype="tf32").peak.flops_per_second == 494.7e12


def test_the_text_shows_the_division() -> None:
    text = mfu(step(), 16.0, ROUND).text
    assert text.en.startswith(
        "MFU 30.0% = 4800 FLOP (forward + backward) / (16 s x 1 x 1e-09 TFLOP/s"
    )
    assert "HFU 38.1% = 6100 FLOP" in text.en
    assert "前向 + 反向" in text.zh
    names = [number.unit for number in mfu(step(), 16.0, ROUND).evidence()]
    assert names == ["FLOP", "FLOP", "FLOP", "share", "share"]


def test_remarks() -> None:
    assert "above 100 %" in mfu(step(), 1.0, ROUND).text.en
    stopped = replace(step(), failure=Failure("a", "aten.mm", "boom"))
    found = mfu(stopped, 16.0, ROUND)
    assert found.partial
    assert "partial" in found.text.en
    assert "has no bfloat16 unit" in mfu(step(), 16.0, "v100").text.en


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), "fast", True])
def test_wrong_times(seconds: object) -> None:
    with pytest.raises(UsageError, match="step_seconds"):
        mfu(step(), seconds, ROUND)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, -8, 1.5, True])
def test_wrong_counts(count: object) -> None:
    with pytest.raises(UsageError, match="count"):
        mfu(step(), 1.0, ROUND, count=count)  # type: ignore[arg-type]


def test_other_mistakes() -> None:
    with pytest.raises(UsageError, match="did you mean 'a100'"):
        mfu(step(), 1.0, "a10")
    with pytest.raises(UsageError, match="measure_cost"):
        mfu(42, 1.0, ROUND)
    with pytest.raises(UsageError, match="no matrix products"):
        mfu(Cost({}, {}), 1.0, ROUND)
    assert mfu(step(), 16.0, "mine", devices={"mine": replace(device("h100"), name="mine")}).mfu
