"""A recorded run that is judged again raises the alerts that it raised when it was live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.watch.toy import Toy
from torchstone.core.errors import InputError
from torchstone.watch.after.replay import replay
from torchstone.watch.learn.journal import Alarmed, Changed, Entry, Judged
from torchstone.watch.record.journal_frames import pack_entries, pack_entry, unpack_entries
from torchstone.watch.record.recorder import thin
from torchstone.watch.record.runfile import NAME, NO_JOURNAL, Frame, Run, frames_in, load_run


def loud(toy: Toy) -> None:
    """A loss that is a hundred times as large."""
    toy.loss_factor = 100.0


def faster(toy: Toy) -> None:
    """Thresholds stretch while the rate is away from its recent self, and shrink again."""
    for group in toy.optimizer.param_groups:
        group["lr"] *= 30
    toy.loss_factor = 5.0


def smaller(toy: Toy) -> None:
    """Batches of another size stretch the thresholds of the calls and of the updates."""
    draw = toy.next_batch

    def next_batch() -> Any:
        x, y = draw()
        return x[:6], y[:6]

    toy.next_batch = next_batch  # type: ignore[method-assign]
    toy.loss_factor = 3.0


def other_settings(toy: Toy) -> None:
    """A check that learns nothing finds something; baselines of the updates begin again."""
    for group in toy.optimizer.param_groups:
        group["betas"] = (0.5, 0.9)
        group["weight_decay"] = 3.0
    toy.loss_factor = 20.0


def broken(toy: Toy) -> None:
    """Gradients that are not finite."""
    toy.loss_factor = float("inf")


def recorded(folder: Path, fault: Callable[[Toy], None], steps: int = 150) -> Run:
    torch.set_num_threads(1)
    Toy().watched(fault, at=110, steps=steps, folder=folder)
    return load_run(folder)


Told = list[tuple[int, str, str, str, bool, int]]


def told_live(run: Run) -> Told:
    return [
        (a["step"], a["signal"], a["layer"], a["channel"], a["opens"], a["episode"])
        for a in run.alerts
    ]


def told_again(run: Run, false_alarms: float) -> Told:
    outcome = replay(run, false_alarms)
    return [(a.step, a.signal, a.layer, a.channel, a.opens, a.episode) for a in outcome.alerts]


@pytest.mark.parametrize("fault", [loud, faster, smaller, other_settings, broken])
def test_the_same_alerts_at_the_same_steps(tmp_path: Path, fault: Callable[[Toy], None]) -> None:
    run = recorded(tmp_path, fault)
    live = told_live(run)
    assert live, "a run without alerts would prove nothing"
    assert told_again(run, run.header["false_alarms_per_10k"]) == live


def test_the_same_thresholds(tmp_path: Path) -> None:
    run = recorded(tmp_path, loud)
    outcome = replay(run, run.header["false_alarms_per_10k"])
    learned = [(a, b) for a, b in zip(run.alerts, outcome.alerts, strict=True) if b.learned]
    assert learned
    for live, again in learned:
        assert again.centre == live["centre"]
        assert again.width == live["width"]
        assert again.sigmas == live["sigmas"]
        assert again.others == live["others"]


def test_layers_are_judged_at_every_step(tmp_path: Path) -> None:
    run = recorded(tmp_path, loud)
    widths = {len(entry.values) for entry in run.entries() if isinstance(entry, Judged)}
    assert max(widths) >= 5
    of_gradients = next(item["number"] for item in run.series if item["phase"] == "gradient")
    steps = [e.step for e in run.entries() if isinstance(e, Judged) and e.series == of_gradients]
    assert steps == list(range(1, 151))


def test_other_thresholds_tell_no_fewer_alarms(tmp_path: Path) -> None:
    run = recorded(tmp_path, faster)
    counts = [replay(run, dial).episodes for dial in (0.001, 2.0, 1000.0)]
    assert counts == sorted(counts)


ENTRIES: list[Entry] = [
    Judged(3, 70_000, 0.25, np.array([1.0, np.nan, np.inf, 0.0])),
    Judged(0, 1, 0.0, np.array([])),
    Changed(2, "forget"),
    Changed(2, "restart"),
    Changed(1, "warmup", (80,)),
    Changed(0, "columns", (1, 5)),
    Alarmed(12, "eval_mode", 1),
]


def test_entries_come_back_as_they_were() -> None:
    found = list(unpack_entries(pack_entries([pack_entry(item) for item in ENTRIES])))
    assert [repr(item) for item in found] == [repr(item) for item in ENTRIES]


@pytest.mark.parametrize("cut", [1, 5, 17, 40])
def test_a_cut_journal_is_one_error(tmp_path: Path, cut: int) -> None:
    raw = b"".join(pack_entry(item) for item in ENTRIES)
    run = Run(tmp_path / NAME, {}, (), np.ones((1, 1)), [], [], [], [], 0,
              journal=[pack_entries([raw[:-cut]])])  # fmt: skip
    with pytest.raises(InputError):
        list(run.entries())


def test_the_journal_is_the_first_to_be_dropped(tmp_path: Path) -> None:
    recorded(tmp_path, loud)
    frames = [frame for _, frame in frames_in((tmp_path / NAME).read_bytes())]
    frames += [Frame("J", b"x"), Frame("J", b"y")]
    before = [f for f in frames if f.kind == "J"]
    thinned = thin(frames)
    assert NO_JOURNAL in thinned
    assert len([f for f in thinned if f.kind == "J" and f.payload]) == len(before) // 2
    assert [f for f in thinned if f.kind != "J"] == [f for f in frames if f.kind != "J"]


def test_a_run_of_another_version_is_one_error(tmp_path: Path) -> None:
    run = recorded(tmp_path, loud, steps=20)
    run.journal.clear()
    with pytest.raises(InputError, match="record it again"):
        replay(run, 2.0)
