"""One cause, one episode: in the lines, the run file, the evidence, the report and on screen."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import torch

from tests.watch.toy import Toy
from torchstone.core.finding import Severity
from torchstone.core.pictures import Table
from torchstone.core.text import Text
from torchstone.watch import Alert
from torchstone.watch.after.live import screen
from torchstone.watch.after.report import report_of
from torchstone.watch.judge.episodes import Episodes
from torchstone.watch.judge.rules import severity_of, signal_named
from torchstone.watch.record.runfile import load_run

HIGH, MEDIUM, LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW


def _learned(step: int, signal: str, severity: Severity = MEDIUM) -> Alert:
    return Alert(step, signal, "", 9.0, severity, 1.0, 0.1, 30.0, "spike")


def _fact(step: int, signal: str, severity: Severity = HIGH) -> Alert:
    return Alert(step, signal, "", 1.0, severity, text=Text("x", "x"))


def test_what_follows_within_the_window_joins_the_first() -> None:
    episodes = Episodes(50)
    first = episodes.take(_learned(100, "loss"))
    assert first is not None
    assert episodes.take(_learned(130, "turn")) is first
    assert episodes.take(_learned(175, "drift")) is first, "fifty steps from the last one told"
    assert [a.signal for a in first.also] == ["turn", "drift"]
    assert [a.opens for a in first.alerts] == [True, False, False]
    assert episodes.take(_learned(300, "loss")) is not first
    assert episodes.count == 2


def test_a_signal_speaks_once_in_an_episode() -> None:
    episodes = Episodes(50)
    assert episodes.take(_learned(0, "loss"))
    assert episodes.take(_learned(20, "loss")) is None
    assert episodes.take(_learned(60, "turn"))
    assert episodes.take(_learned(105, "loss")) is None, "the episode is still open"


def test_a_fact_that_never_ends_hides_no_other_cause() -> None:
    episodes = Episodes(50)
    told = [step for step in range(0, 500, 5) if episodes.take(_fact(step, "eval_mode"))]
    assert told == [0]
    other = episodes.take(_fact(300, "non_finite"))
    assert other is not None
    assert other.first.signal == "non_finite"


def test_a_late_learned_signal_joins_what_still_goes_on_unless_it_is_worse() -> None:
    episodes = Episodes(50)
    first = episodes.take(_learned(0, "grad_norm"))
    for step in range(0, 121, 10):
        episodes.take(_learned(step, "grad_norm"))
    assert episodes.take(_learned(120, "drift")) is first
    for step in range(120, 241, 10):
        episodes.take(_learned(step, "grad_norm"))
    worse = episodes.take(_learned(240, "loss", HIGH))
    assert worse is not None
    assert worse is not first


def test_an_episode_is_as_severe_as_its_worst_alert() -> None:
    episodes = Episodes(50)
    first = episodes.take(_learned(0, "turn", LOW))
    assert first is not None
    assert first.just_became_worse
    episodes.take(_learned(1, "drift", LOW))
    assert not first.just_became_worse
    episodes.take(_fact(2, "non_finite", HIGH))
    assert first.just_became_worse
    assert first.severity is HIGH


@pytest.mark.parametrize(
    ("signal", "usual", "value", "severity"),
    [
        ("loss", 0.5, 9.0, HIGH),
        ("loss", 0.5, 2.0, MEDIUM),
        ("loss", 0.5, 0.6, LOW),
        ("grad_norm", 1.0, 300.0, HIGH),
        ("grad_norm", 1.0, 4.0, MEDIUM),
        ("grad_norm", 300.0, 1.0, MEDIUM),
        ("turn", 20.0, 25.0, LOW),
    ],
)
def test_severity_follows_size(signal: str, usual: float, value: float, severity: Severity) -> None:
    assert severity_of(signal_named(signal), value, usual) is severity


def _loud(toy: Toy) -> None:
    toy.loss_factor = 300.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("episodes")
    torch.set_num_threads(1)
    Toy().watched(_loud, at=100, steps=130, folder=folder)
    return folder


@pytest.mark.parametrize(("lang", "also", "following"), [("en", "also: ", "next: "), ("zh", "另有：", "下一步：")])  # fmt: skip
def test_one_fault_is_one_alert_line_with_what_followed_under_it(
    lang: str, also: str, following: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Alert] = []
    Toy().watched(_loud, at=100, steps=130, lang=lang, on_alert=seen.append)
    lines = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert sum(line.startswith("[ALERT] Step ") for line in lines) == 1
    assert lines[0].startswith("[ALERT] Step 101 | grad_norm: ")
    assert lines[1].strip().startswith(following)
    assert signal_named("grad_norm").remedy.get(lang) in lines[1]
    assert lines[2:]
    assert all(line.startswith(f"        {also}Step 1") for line in lines[2:])
    assert len(seen) == 1, "the user's function is called once"
    assert seen[0].severity is HIGH


def test_the_run_file_and_the_evidence_hold_the_episode(recorded: Path) -> None:
    run = load_run(recorded)
    [episode] = run.episodes
    assert len(episode) > 1
    assert [alert["opens"] for alert in episode] == [True] + [False] * (len(episode) - 1)
    places = list((recorded / "alerts").glob("*/evidence.json"))
    assert len(places) == 1, "one for the cause"
    evidence = json.loads(places[0].read_text("utf-8"))
    assert evidence["next"] == signal_named("grad_norm").remedy.en
    assert [a["signal"] for a in evidence["also"]] == [a["signal"] for a in episode[1:]]


def test_the_report_and_the_screen_show_one_finding(recorded: Path) -> None:
    run = load_run(recorded)
    report = report_of(run)
    [finding] = report.findings
    assert finding.severity is HIGH
    assert "also: loss (step 101)" in finding.message("en")
    assert "另有：loss（第 101 步）" in finding.message("zh")
    tables = [item for item in finding.evidence if isinstance(item, Table)]
    assert len(tables[-1].rows) == len(run.alerts)
    lines = screen(run, 200, "en").splitlines()
    assert sum(line.startswith("[ALERT]") for line in lines) == 1
    assert lines[-1].startswith("        also: ")


def test_alerts_of_an_older_run_are_grouped_by_their_distance(recorded: Path) -> None:
    run = load_run(recorded)
    for event in run.alerts:
        del event["opens"]
    assert len(run.episodes) == 1
    run.alerts[-1]["step"] += 500
    assert [len(episode) for episode in run.episodes] == [len(run.alerts) - 1, 1]


def test_a_run_of_nan_only_has_a_report_and_no_baseline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    toy = Toy()
    toy.loss_factor = float("nan")
    with caplog.at_level(logging.INFO):
        toy.watched(None, steps=70, folder=tmp_path / "run")
    assert "[Monitor] No baseline: no value so far was finite" in caplog.text
    report = report_of(load_run(tmp_path / "run"))
    assert report.answer is not None
    assert report.answer.headline == Text(
        "Not healthy since step 1: NaN or infinity in the gradients",
        "自第 1 步起异常：梯度中有 NaN 或无穷大",
    )
    assert {tile.value for tile in report.answer.tiles} >= {"NaN"}
    assert "NaN" in report.to("html")


def test_a_weak_early_sign_does_not_head_the_report(recorded: Path) -> None:
    """What the headline, the finding and the next command name is the severe alert of the episode."""
    run = load_run(recorded)
    weak = {**run.alerts[0], "signal": "step_angle", "severity": "LOW", "en": "early", "zh": "早"}
    step = int(run.alerts[0]["step"])
    for alert in run.alerts:
        alert["opens"] = False
    run.events.insert(0, {**weak, "step": step - 9, "opens": True})
    assert len(run.episodes) == 1
    report = report_of(run)
    assert report.answer is not None
    assert report.answer.headline.en.startswith(f"Not healthy since step {step}: gradient norm")
    assert report.answer.next == ("torchstone explain watch-grad-norm",)
    [finding] = report.findings
    assert finding.name == "grad-norm"
    assert f"also: step_angle (step {step - 9})" in finding.message("en")


def test_the_gradient_norm_of_a_run_that_ended_as_nan_is_nan(tmp_path: Path) -> None:
    toy = Toy()
    toy.watched(None, steps=30, folder=tmp_path / "run")
    run = load_run(tmp_path / "run")
    place = run.columns.index("grad_norm")
    run.scalars[20:, place] = float("nan")
    tiles = report_of(run).answer.tiles  # type: ignore[union-attr]
    assert not [tile for tile in tiles if tile.value == "NaN/Inf"], "steps that were not read"
    alert = {"event": "alert", "step": 21, "signal": "non_finite", "severity": "HIGH"}
    run.events.append({**alert, "opens": True})
    tiles = report_of(run).answer.tiles  # type: ignore[union-attr]
    [tile] = [tile for tile in tiles if tile.value == "NaN/Inf"]
    assert isinstance(tile.note, Text)
    assert tile.note.en.startswith("since step 21; ")
