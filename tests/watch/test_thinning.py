"""Nothing that happened may vanish from a chart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.watch.clocks import Ticking
from torchstone.core.pictures import Plot
from torchstone.watch import Watch
from torchstone.watch.after.report import report_of
from torchstone.watch.after.thinning import around_alerts, thin_curve
from torchstone.watch.record.runfile import NAME, json_frame, load_run, rows_frame

_VALUES = st.lists(
    st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=400
)


@given(values=_VALUES, points=st.integers(3, 60), data=st.data())
@settings(deadline=None, max_examples=200)
def test_every_extreme_and_every_place_that_matters_is_kept(
    values: list[float], points: int, data: st.DataObject
) -> None:
    array = np.array(values)
    always = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=5))
    kept = thin_curve(array, np.array(always, np.int64), points)
    assert (np.diff(kept) > 0).all()
    assert {0, len(values) - 1, *always} <= set(kept.tolist())
    finite = array[np.isfinite(array)]
    if len(finite):
        drawn = array[kept][np.isfinite(array[kept])]
        assert drawn.min() == finite.min()
        assert drawn.max() == finite.max()
    assert np.isfinite(array[kept]).all() == np.isfinite(array).all(), "a gap stays a gap"
    assert len(kept) <= max(points, 3 * max(points // 3, 1)) + 2 + len(always)


def test_steps_near_an_alert_are_kept_as_they_are() -> None:
    steps = np.arange(1.0, 6001.0)
    kept = around_alerts(steps, [3000], 50)
    assert steps[kept].tolist() == list(range(2950, 3051))
    many = around_alerts(steps, range(1, 6001, 7), 50)
    assert set(range(0, 6000, 7)) <= set(many.tolist()), "the alert steps at least"
    assert len(many) < 3500


def test_a_spike_of_one_step_is_in_the_curve_of_the_report(tmp_path: Path) -> None:
    frames = [json_frame("H", {"format": 1, "alert_window": 50})]
    frames.append(json_frame("C", {"columns": ["loss"]}))
    rows = [(float(step), 6.93 if step == 4321 else 2.0) for step in range(1, 6001)]
    frames.append(rows_frame(rows))
    frames.append(json_frame("E", {"event": "alert", "step": 4321, "signal": "loss", "opens": True,
                                   "en": "loss", "zh": "loss"}))  # fmt: skip
    (tmp_path / NAME).write_bytes(b"".join(frame.pack() for frame in frames))
    report = report_of(load_run(tmp_path))
    [measure] = [item for item in report.measures if item.name == "loss"]
    [plot] = measure.evidence
    assert isinstance(plot, Plot)
    points = dict(zip(plot.series[0].x, plot.series[0].y, strict=True))
    assert points[4321.0] == np.float32(6.93)
    assert {float(step) for step in range(4271, 4372)} <= points.keys()
    assert len(points) < 1000


def test_a_step_that_was_not_read_is_no_event_and_one_that_was_not_finite_is(
    tmp_path: Path,
) -> None:
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    time = Ticking(1e-3, 1e-3)  # watching costs as much as the step: most steps are not read
    with Watch(model, optimizer, folder=tmp_path, clock=time.clock) as watch:
        for step in range(200):
            optimizer.zero_grad()
            model(torch.randn(8, 8)).square().mean().backward()
            if step >= 60:
                model.weight.grad.fill_(torch.nan)  # type: ignore[union-attr]
            optimizer.step()
            time.pass_step()
            watch.step(1.0)
    run = load_run(tmp_path)
    recorded = run.column("grad_norm")
    assert np.isnan(recorded[:60]).sum() > 20, "most steps were not read"
    assert np.isinf(recorded[60:]).any()
    assert not np.isinf(recorded[:60]).any()
    [chart] = [m.evidence[0] for m in report_of(run).measures if m.name == "grad_norm"]
    assert isinstance(chart, Plot)
    drawn = np.array(chart.series[0].y, float)
    assert not np.isnan(drawn).any()
    assert np.isinf(drawn).any()
    assert len(drawn) == (~np.isnan(recorded)).sum()
