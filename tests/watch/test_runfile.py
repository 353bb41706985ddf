"""The file of a run: whole after a kill, bounded, and never trusted."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.watch.clocks import STILL
from tests.watch.toy import Toy
from torchstone.cli.main import run as run_command
from torchstone.core.errors import InputError
from torchstone.core.pictures import Plot, Table
from torchstone.watch import Watch
from torchstone.watch.after.compare import compare_watched
from torchstone.watch.after.report import replay_report, report_of
from torchstone.watch.after.what_if import parse_what_if
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.learner import JudgedOptimizer
from torchstone.watch.measure.parameters import WatchedParameters
from torchstone.watch.record.recorder import Recorder, thin
from torchstone.watch.record.runfile import (
    NAME,
    Frame,
    Run,
    counts_frame,
    frames_in,
    json_frame,
    layers_frame,
    load_run,
    rows_frame,
)
from torchstone.watch.settings import Settings


def _loud(toy: Toy) -> None:
    toy.loss_factor = 100.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    torch.set_num_threads(1)
    Toy().watched(_loud, at=100, steps=120, folder=folder)
    return folder


def test_what_was_recorded_comes_back(recorded: Path) -> None:
    run = load_run(recorded)
    assert run.scalars[:, 0].tolist() == list(range(1, 121))
    assert {"loss", "grad_norm", "lr", "update_size"} <= set(run.columns)
    assert np.isfinite(run.column("grad_norm")).all()
    assert run.actors[0]["layers"] == ["0", "1", "4", "5", "7"]
    step, watched, values = run.layers[-1]
    assert (step, watched) == (120, 0)
    assert values.shape == (len(run.actors[0]["signals"]), 5)
    assert run.counts[0][3].sum() == sum(run.actors[0]["sizes"])
    assert run.summary["steps"] == 120
    assert {alert["signal"] for alert in run.alerts} >= {"grad_norm", "loss"}
    assert run.torn_bytes == 0


def test_every_cut_is_readable(recorded: Path, tmp_path: Path) -> None:
    data = (recorded / NAME).read_bytes()
    whole = load_run(recorded)
    head = 12 + int.from_bytes(data[4:8], "little")  # of the first frame: without it, it is no run
    for cut in [*range(len(data) - 1, head, -len(data) // 40), head]:
        (tmp_path / NAME).write_bytes(data[:cut])
        run = load_run(tmp_path)
        rows = len(run.scalars)
        np.testing.assert_array_equal(run.scalars, whole.scalars[:rows, : run.scalars.shape[1]])


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 500, b"H" + b"\xff" * 40])
def test_what_is_no_run_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(InputError, match="expected a folder with"):
        load_run(tmp_path)


def test_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(json_frame("H", {"format": 99}).pack())
    with pytest.raises(InputError, match="format 99"):
        load_run(tmp_path)


def test_hostile_frames_end_in_one_error(tmp_path: Path) -> None:
    head = json_frame("H", {"format": 1}).pack()
    bombs = [
        Frame("L", layers_frame(1, 0, np.ones((2, 3))).payload[:12] + b"junk"),
        Frame("L", b"\x01\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff"),
        Frame("X", counts_frame(1, 0, np.ones((2, 256), np.int64), 1.0).payload[:10]),
        Frame("C", b'{"columns": 5}'),
        Frame("S", b"123"),
        Frame("E", b"[1, 2]"),
    ]
    for bomb in bombs:
        (tmp_path / NAME).write_bytes(head + bomb.pack())
        with pytest.raises(InputError):
            load_run(tmp_path)


def test_the_file_stays_under_its_limit_and_keeps_the_ends(tmp_path: Path) -> None:
    settings = Settings(folder=tmp_path)
    recorder = Recorder(tmp_path, settings, {}, limit=200_000)
    model = nn.Linear(30, 30)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watched = WatchedParameters(optimizer, {})
    judged = JudgedOptimizer("optimizer1", watched, 10, 1.0)
    recorder.add_optimizer(judged)
    generator = np.random.default_rng(0)
    for step in range(1, 6001):
        recorder.step(TrainingCall(step, loss=float(step)), [judged])
        if step % 10 == 0:
            recorder.layers(step, judged)
            counts = generator.integers(0, 1000, (2, 256))
            recorder.histograms(step, watched, counts, 1.0)
    recorder.close({"steps": 6000})
    assert (tmp_path / NAME).stat().st_size < 210_000
    run = load_run(tmp_path)
    assert run.scalars[-1, 0] == 6000
    assert run.counts[-1][0] == 6000
    assert len(run.scalars) > 1000


def test_thinning_drops_the_large_frames_first() -> None:
    frames = [json_frame("H", {}), *[Frame("L", b"x")] * 300, *[rows_frame([(1.0, 2.0)])] * 10]
    once = thin(frames)
    assert sum(f.kind == "S" for f in once) == 10
    assert sum(f.kind == "L" for f in once) == 300 - 113, "every second of the older three quarters"


_KILLED = """
import sys, time, torch
from torch import nn
from torchstone.watch import Watch
torch.set_num_threads(1)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with Watch(model, optimizer, folder=sys.argv[1], budget=10) as watch:
    while True:
        optimizer.zero_grad()
        loss = (model(torch.randn(8, 4)) - torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        watch.step(loss)
        print(watch.call.step - 1, time.time(), flush=True)
"""


def test_a_killed_run_loses_at_most_the_last_second(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(tmp_path / "run")], stdout=out,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not log.stat().st_size and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(2.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
    told = [line.split() for line in log.read_text().splitlines() if line.count(" ") == 1]
    times = [float(at) for _, at in told]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    # a busy machine may have taken the process away between two steps
    due = [int(step) for step, at in told if float(at) < times[-1] - 1.0 - 2 * max(pauses)]
    assert due, "it must have run for a second"
    run = load_run(tmp_path / "run")
    assert run.scalars[-1, 0] >= due[-1]
    assert not run.summary


def test_a_writer_that_comes_back_cuts_the_torn_tail(recorded: Path, tmp_path: Path) -> None:
    data = (recorded / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(data[:-7])
    Recorder(tmp_path, Settings(folder=tmp_path), {}, 1 << 20).close({"steps": 1})
    ends = [place for place, _ in frames_in((tmp_path / NAME).read_bytes())]
    assert ends[-1] == (tmp_path / NAME).stat().st_size


def test_two_processes_never_share_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = Recorder(tmp_path / "run", Settings(), {}, 1 << 20) if _made(tmp_path / "run") else None
    toy = Toy()
    toy.watched(None, steps=3, folder=tmp_path / "run")
    assert (tmp_path / "run-2" / NAME).exists()
    assert first is not None
    first.close({})


def _made(folder: Path) -> bool:
    folder.mkdir()
    return True


def test_a_folder_that_cannot_be_written_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    alerts = Toy().watched(_loud, at=70, steps=80, folder=tmp_path / "file" / "run")
    assert "this run is not recorded" in caplog.text
    assert alerts, "watching goes on"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_fills_up_ends_the_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    toy = Toy()
    watch = Watch(folder=tmp_path, warmup_steps=20, clock=STILL)
    watch.prepare(toy.train_step, (), {})
    assert watch.recorder is not None
    watch.recorder._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
    for step in range(60):
        toy.loss_factor = 100.0 if step == 50 else 1.0
        watch.begin()
        watch.end(toy.train_step(toy.next_batch()))
    watch.close()
    assert caplog.text.count("recording stopped, monitoring continues") == 1
    assert "grad_norm" in {alert.signal for alert in watch.alerts}


def test_the_evidence_of_an_alert(recorded: Path) -> None:
    run = load_run(recorded)
    place = recorded / run.alerts[0]["evidence"]
    evidence = json.loads((place / "evidence.json").read_text())
    assert evidence["step"] == 101
    assert len(evidence["last_steps"]) == 101
    assert evidence["last_steps"][-1]["step"] == 101, "the step itself"
    assert evidence["first_layers_to_move"]
    assert evidence["random_state"]["torch"]
    script = (place / "replay_step.py").read_text()
    compile(script, "replay_step.py", "exec")
    assert "Replays step 101" in script


def test_the_report_of_a_run(recorded: Path, golden: Any) -> None:
    report = report_of(load_run(recorded))
    assert [finding.name for finding in report.findings] == ["grad-norm"]
    names = {measure.name for measure in report.measures}
    assert {"steps", "loss", "grad_norm", "layers_layer_consistency", "mean_exponent"} <= names
    page = report.to("html")
    assert "<svg" in page
    assert "每 1 万步" in page


def test_another_dial_judges_the_same_run(recorded: Path) -> None:
    run = load_run(recorded)
    strict = replay_report(run, 0.001).measures[0].value
    loose = replay_report(run, 1000).measures[0].value
    assert strict <= loose
    assert replay_report(run, 2.0).measures[0].value == 1


@pytest.mark.parametrize(
    "words",
    [["watch"], ["watch", "diff", "a"], ["watch", "RUN"], ["watch", "RUN", "--what-if", "fp17"],
     ["watch", "--replay", "RUN", "--false-alarms", "-1"]],
)  # fmt: skip
def test_a_bad_run_is_one_error(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([word.replace("RUN", str(tmp_path)) for word in words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("torchstone: ")
    assert "Traceback" not in told.err


@pytest.mark.filterwarnings("error")
def test_a_run_that_was_read_in_part_is_shown_without_gaps_in_its_words(tmp_path: Path) -> None:
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with Watch(model, optimizer, folder=tmp_path / "run", clock=STILL) as watch:
        watch._budget.every = 2  # step 30 is read, step 40 is not
        for _ in range(113):
            optimizer.zero_grad()
            model(torch.randn(8, 8)).square().mean().backward()
            optimizer.step()
            watch.step(1.0)
    report = report_of(load_run(tmp_path / "run"))
    values = [item.value for item in report.measures if item.name.startswith("layers_")]
    assert values
    assert not any(math.isnan(float(value)) for value in values)


def _until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


@pytest.mark.parametrize("on_alert", [None, print])
def test_a_pause_holds_nothing_back(
    on_alert: Callable[[Any], object] | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    toy = Toy()
    options: dict[str, Any] = {"folder": tmp_path / "run", "budget": 10, "warmup_steps": 40}
    options["on_alert"] = on_alert
    with Watch(toy.model, toy.optimizer, **options) as watch:
        for step in range(80):
            toy.loss_factor = 100.0 if step >= 77 else 1.0
            watch.step(toy.train_step(toy.next_batch()))
        assert _until(lambda: "[ALERT] Step 78" in caplog.text)
        assert _until(lambda: len(load_run(tmp_path / "run").scalars) == 80)
        assert watch._judge._pause_thread._thread is not None
        thread = watch._judge._pause_thread._thread
        assert thread is not None
        assert thread.is_alive()
    assert _until(lambda: not thread.is_alive())


def test_what_may_interfere_is_not_judged_by_another_thread() -> None:
    toy = Toy()
    with Watch(toy.model, toy.optimizer, folder=False, budget=10, on_alert="raise") as watch:
        watch.step(toy.train_step(toy.next_batch()))
        judge = watch._judge
        judge._pending.append(("call", judge.call))
        judge._submitted_at = 0.0
        judge.judge_in_pause()
        assert len(judge._pending) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_is_forked_while_steps_are_judged_is_not_locked() -> None:
    toy = Toy()
    with Watch(toy.model, toy.optimizer, folder=False, clock=STILL) as watch:
        watch.step(toy.train_step(toy.next_batch()))
        held, go_on = threading.Event(), threading.Event()

        def judge() -> None:
            with watch._judge._lock:
                held.set()
                go_on.wait(60)

        thread = threading.Thread(target=judge)
        thread.start()
        held.wait(60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forking with threads is what is tried
            child = os.fork()
        if child == 0:
            free = watch._judge._lock.acquire(timeout=20)
            os._exit(0 if free else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        go_on.set()
        thread.join()


def test_two_runs_say_first_where_they_part(tmp_path: Path) -> None:
    runs = []
    for name, at in (("a", 10**6), ("b", 60), ("c", 10**6)):
        toy = Toy()
        with Watch(toy.model, toy.optimizer, folder=tmp_path / name, clock=STILL) as watch:
            for step in range(90):
                toy.loss_factor = 0.25 if step >= at else 1.0
                watch.step(toy.train_step(toy.next_batch()))
        runs.append(load_run(tmp_path / name))
    first = compare_watched(runs[0], runs[1]).measures[0]
    assert (first.name, first.value) == ("parts_at", 61.0)
    [table] = first.evidence
    assert isinstance(table, Table)
    assert ("loss", 61) in [row[1:] for row in table.rows]
    assert compare_watched(runs[0], runs[2]).measures[0].name == "note"


def _run_of(folder: Path, columns: dict[str, list[float]], thinned: bool = False) -> Run:
    frames = [json_frame("H", {"format": 1}), json_frame("C", {"columns": list(columns)})]
    rows = list(zip(*columns.values(), strict=True))
    frames.append(rows_frame([(float(step), *row) for step, row in enumerate(rows, 1)]))
    if thinned:
        frames.append(json_frame("E", {"event": "note", "step": 1, "kind": "thinned", "en": "x"}))
    folder.mkdir()
    (folder / NAME).write_bytes(b"".join(frame.pack() for frame in frames))
    return load_run(folder)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
@pytest.mark.parametrize("swap", [False, True])
def test_what_is_not_finite_never_equals_a_number(odd: float, swap: bool, tmp_path: Path) -> None:
    a = _run_of(tmp_path / "a", {"loss": [1.0] * 40})
    b = _run_of(tmp_path / "b", {"loss": [1.0] * 20 + [odd] * 20})
    runs = (b, a) if swap else (a, b)
    first = compare_watched(*runs).measures[0]
    assert (first.name, first.value) == ("parts_at", 21.0)
    assert compare_watched(b, b).measures[0].name == "note", "and equals itself"


def test_steps_that_were_not_read_are_no_difference(tmp_path: Path) -> None:
    whole = [float(step) for step in range(40)]
    some = [value if step % 16 < 2 else math.nan for step, value in enumerate(whole)]
    a = _run_of(tmp_path / "a", {"loss": whole, "grad_norm": whole})
    b = _run_of(tmp_path / "b", {"loss": whole, "grad_norm": some}, thinned=True)
    assert compare_watched(a, b).measures[0].name == "note"
    other = [value * (2 if step > 20 else 1) for step, value in enumerate(some)]
    c = _run_of(tmp_path / "c", {"loss": whole, "grad_norm": other}, thinned=True)
    assert compare_watched(a, c).measures[0].name == "note", "fewer than five steps"


@pytest.mark.parametrize(("b", "state", "said"), [
    ([2.0, 1.0] * 20, "plain", "No clear winner"), ([0.5, 0.4] * 20, "good", "B is better than A: loss 1.5 → 0.45"),
    ([3.0, 2.9] * 20, "bad", "B is worse than A: loss 1.5 → 2.95"),
    ([1.0] * 20 + [math.nan] * 20, "bad", "from step 21 on"), ([1.0, 2.0] * 20, "good", "B repeats A"),
])  # fmt: skip
def test_two_runs_have_a_verdict(b: list[float], state: str, said: str, tmp_path: Path) -> None:
    runs = [_run_of(tmp_path / name, {"loss": loss}) for name, loss in (("a", [1.0, 2.0] * 20), ("b", b))]  # fmt: skip
    runs[1].header["settings"] = {"lr": "0.1"}
    answer = compare_watched(*runs).answer
    assert answer is not None
    assert answer.state == state
    assert said in answer.headline.en
    assert "lr – → 0.1" in answer.lines[0].en
    assert f"{b[-1]:.4g}" in str(answer.tiles[0].value)


def test_curves_share_a_scale_and_unread_steps_are_left_out(tmp_path: Path) -> None:
    some = [1.0 if step % 4 == 0 else math.nan for step in range(40)]
    a = _run_of(tmp_path / "a", {"loss": [1.0] * 40, "grad_norm": [4.0, 5.0] * 20})
    b = _run_of(tmp_path / "b", {"loss": [1.0] * 40, "grad_norm": some}, thinned=True)
    report = compare_watched(a, b)
    assert report.answer is not None
    norms = report.answer.pictures[-1]
    assert isinstance(norms, Plot)
    assert [len(series.y) for series in norms.series] == [40, 10]
    rows = report.to("text").splitlines()
    assert any("B: b ▁▁▁▁▁▁▁▁▁▁ " in row for row in rows), "low beside the other run"


def test_a_layer_that_is_nan_in_one_run_is_named(tmp_path: Path) -> None:
    runs = []
    for name, value in (("a", 1.0), ("b", math.nan)):
        run = _run_of(tmp_path / name, {"loss": [1.0] * 10})
        run.actors.append({"layers": ["one", "two"], "signals": ["update_ratio"]})
        run.layers.append((10, 0, np.array([[0.5, value]])))
        runs.append(run)
    [layers] = [m for m in compare_watched(*runs).measures if m.name == "layers_that_differ"]
    [table] = layers.evidence
    assert isinstance(table, Table)
    assert table.rows == (("update_ratio", "two", 1.0, "nan"),)


def test_what_was_asked_for_comes_first(recorded: Path) -> None:
    report = report_of(load_run(recorded), parse_what_if("fp16:2^12"))
    assert report.measures[0].name == "what_if_flushed"
    assert "2^12" in report.measures[0].label.en
