"""Time on a device, counted by hand on round rates."""

from __future__ import annotations

import pytest

from tests.cost.toys import ROUND, step, toy
from torchstone.core.errors import UsageError
from torchstone.core.text import LANGS, Text
from torchstone.cost.on_devices.roofline_picture import roofline_plot, roofline_table
from torchstone.cost.on_devices.roofline_time import (
    LAUNCH_SECONDS,
    Duration,
    Efficiency,
    Roofline,
    roofline,
)
from torchstone.cost.records.ledger import BACKWARD, FORWARD, RECOMPUTE, Cost, Key, Tally
from torchstone.render import draw
from torchstone.render.style import Style
from torchstone.runtime.devices import device

BARE = Efficiency(launch_seconds=0.0)


def one(tally: Tally, dtype: str = "bfloat16", efficiency: Efficiency = BARE) -> Duration:
    cost = Cost({Key("m", FORWARD, "aten.mm", dtype): tally}, {})
    return roofline(cost, ROUND, efficiency=efficiency).total()


def test_compute_bound() -> None:
    found = one(Tally(calls=1, flops=3000, bytes_read=100, bytes_written=100))
    assert (found.compute_seconds, found.memory_seconds, found.seconds) == (3.0, 2.0, 3.0)
    assert found.bound == "compute"
    assert found.achieved == 1.0
    assert found.intensity == 15.0
    assert found.flops_per_second == 1000.0


def test_memory_bound() -> None:
    found = one(Tally(calls=1, flops=1000, bytes_read=300, bytes_written=100))
    assert (found.seconds, found.bound, found.achieved) == (4.0, "memory", 0.25)


def test_launch_bound() -> None:
    rates = Efficiency(launch_seconds=0.5)
    found = one(Tally(calls=10, flops=1000, bytes_read=200), efficiency=rates)
    assert (found.seconds, found.launch_seconds, found.bound) == (7.0, 5.0, "launch")


def test_vector_work_runs_outside_the_matrix_units() -> None:
    assert one(Tally(calls=1, flops=1000, vector_flops=20)).compute_seconds == 3.0
    assert one(Tally(calls=1, vector_flops=20)).compute_seconds == 2.0


def test_what_a_kernel_does_again_takes_time_but_is_no_achievement() -> None:
    found = one(Tally(calls=1, flops=1000, extra_flops=1000))
    assert (found.seconds, found.achieved) == (2.0, 0.5)


def test_efficiency_divides() -> None:
    found = one(Tally(1, flops=1000, bytes_read=40), efficiency=Efficiency(0.5, 0.8, 0.0))
    assert (found.compute_seconds, found.memory_seconds) == (2.0, 0.5)


def test_a_view_starts_no_kernel() -> None:
    assert one(Tally(calls=100), efficiency=Efficiency()).seconds == 0.0
    assert one(Tally(calls=100)).bound == ""


def test_number_formats_have_their_own_peak() -> None:
    tally = Tally(calls=1, flops=1000)
    assert one(tally, "bfloat16").seconds == 1.0
    assert one(tally, "float32").seconds == 20.0
    assert one(tally, "float16").seconds == 20.0  # no unit: at the rate of float32
    assert one(tally, "int64").seconds == 100.0  # no matrix unit at all


def test_tf32_is_a_choice() -> None:
    cost = Cost({Key("m", FORWARD, "aten.mm", "float32"): Tally(1, flops=1000)}, {})
    found = roofline(cost, ROUND, efficiency=BARE, tf32=True)
    assert found.total().seconds == 5.0
    assert "float32 at the rate of tf32" in found.assumed.en


def test_a_stand_in_is_told() -> None:
    cost = Cost({Key("m", FORWARD, "aten.mm", "bfloat16"): Tally(1, flops=1)}, {})
    found = roofline(cost, "v100")
    assert found.stand_ins == {"bfloat16": "float32"}
    assert "bfloat16 at the rate of float32" in found.assumed.en
    assert roofline(cost, "h100").stand_ins == {}


def test_a_format_without_products_needs_no_peak() -> None:
    entries = {Key("m", FORWARD, "aten.add", "float64"): Tally(1, vector_flops=10, bytes_read=80)}
    assert roofline(Cost(entries, {}), "910b").total().seconds > 0
    entries = {Key("m", FORWARD, "aten.mm", "float64"): Tally(1, flops=10)}
    with pytest.raises(UsageError, match="float64"):
        roofline(Cost(entries, {}), "910b")


def by_hand() -> Roofline:
    return roofline(step(), ROUND, efficiency=BARE)


def test_phases_modules_and_operators_add_up() -> None:
    found = by_hand()
    # mm 1.0, attention max(0.6, 2.0), relu max(5.0, 2.0)
    assert found.by_phase()[FORWARD].seconds == 1.0 + 2.0 + 5.0
    # mm 2.0, attention max(1.5, 3.0)
    assert found.by_phase()[BACKWARD].seconds == 5.0
    assert found.by_phase()[RECOMPUTE].seconds == 1.0
    assert found.by_phase()["optimizer"].seconds == 7.0
    assert found.total().seconds == 21.0
    assert found.total(FORWARD).seconds == 8.0
    assert found.by_operator()["aten.mm"].seconds == 4.0
    assert found.by_operator(FORWARD)["aten.mm"].seconds == 1.0
    modules = found.by_module()
    assert (modules["a"].seconds, modules["b"].seconds, modules[""].seconds) == (9.0, 5.0, 21.0)
    assert found.by_bound() == {"compute": 16.0, "memory": 5.0, "launch": 0.0}


def test_launches_are_charged_by_default() -> None:
    assert by_hand().total().seconds < roofline(step(), ROUND).total().seconds
    calls = step().total().calls
    assert roofline(step(), ROUND).total().launch_seconds == pytest.approx(calls * LAUNCH_SECONDS)


def test_a_report_with_a_cost_will_do() -> None:
    class Report:
        cost = step()

    assert roofline(Report(), "h100").total().seconds > 0


@pytest.mark.parametrize(
    ("efficiency", "said"),
    [
        (Efficiency(compute=0.0), "greater than 0"),
        (Efficiency(memory=1.5), "at most 1"),
        (Efficiency(compute=float("nan")), "greater than 0"),
        (Efficiency(launch_seconds=-1.0), "greater than 0"),
    ],
)
def test_wrong_efficiencies(efficiency: Efficiency, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        roofline(step(), ROUND, efficiency=efficiency)


def test_wrong_sources_and_devices() -> None:
    with pytest.raises(UsageError, match="measure_cost"):
        roofline("model", ROUND)
    with pytest.raises(UsageError, match="did you mean"):
        roofline(step(), "h101")


def test_the_picture() -> None:
    found = roofline(toy(), "h100")
    plot = roofline_plot(found, "bfloat16")
    roof, *points = plot.series
    assert roof.marks == (device("h100").ridge("bfloat16"),)
    assert max(roof.y) == 989.4e12
    assert [series.name for series in points] == ["aten.mm", "aten.add"]
    # 2 x (1280 + 2560) FLOP, 2 x (288 + 160 + 576 + 288) bytes; 2 x 160 FLOP, 2 x 960 bytes
    assert [series.x for series in points] == [(3840 / 1312,), (160 / 960,)]
    for series in points:
        assert series.y[0] <= series.x[0] * device("h100").memory_bytes_per_second
    for lang in LANGS:
        drawn = draw.html(plot, Style(lang=lang))
        assert drawn.count('"marks"') == 1
        assert "aten.mm" in drawn
        assert "屋顶线" in drawn if lang == "zh" else "Roofline" in drawn
        assert draw.text(plot, Style(lang=lang))


def test_the_table() -> None:
    table = roofline_table(roofline(step(), ROUND, efficiency=BARE))
    assert table.rows[0] == ("aten._foreach_add", 1, 7.0, Text("compute", "计算"), None, 0.0)
    assert table.rows[1] == ("aten.relu", 1, 5.0, Text("compute", "计算"), 0.25, 0.0)
