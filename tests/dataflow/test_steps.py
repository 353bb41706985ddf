"""A step divides into data, device and host; nothing is lost and nothing counts twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchstone.cli.main import run
from torchstone.dataflow.steps.answer import steps_answer
from torchstone.dataflow.steps.command import report_on_steps
from torchstone.dataflow.steps.measuring import (
    _ANCHOR,
    Measured,
    Outcome,
    _Times,
    read_events,
)
from torchstone.dataflow.steps.spans import Span, divide, holds, length, merged, without
from torchstone.dataflow.tracing.sampling import Spot


def test_spans() -> None:
    assert merged([(5, 6), (0, 2), (1, 3), (3, 4), (8, 8)]) == [(0, 4), (5, 6)]
    assert without([(0, 10)], [(2, 3), (5, 7), (9, 12)]) == [(0, 2), (3, 5), (7, 9)]
    assert without([(4, 6)], [(0, 1), (3, 5)]) == [(5, 6)]
    assert without([(0, 1), (4, 5)], [(0, 5)]) == []
    assert holds([(0, 2), (4, 5)], 4.5)
    assert not holds([(0, 2), (4, 5)], 2)


@pytest.mark.parametrize(
    ("accelerator", "data", "device"),
    [
        (True, 3.0, 5.0),  # kernels that run while the loader is waited for hide it
        (False, 4.0, 4.0),  # operators inside of the loader are loading
    ],
)
def test_the_parts_add_up(accelerator: bool, data: float, device: float) -> None:
    found = divide((0, 10), [(-2, 4)], [(3, 6), (5, 8), (9, 30)][:2], accelerator)
    assert length(found.data) == data
    assert length(found.device) == device
    assert length(found.data) + length(found.device) + length(found.host) == 10
    assert [found.part_of(moment) for moment in (1, 7, 9, 11)] == ["data", "device", "host", ""]


@dataclass
class _Event:
    name: str
    span: Span
    device: str = "CPU"
    self_cpu_time_total: float = 1.0
    self_device_time_total: float = 2.0
    time_range: SimpleNamespace = field(init=False)
    device_type: SimpleNamespace = field(init=False)

    def __post_init__(self) -> None:
        self.device_type = SimpleNamespace(name=self.device)
        self.time_range = SimpleNamespace(start=self.span[0], end=self.span[1])


LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
EVENTS = (
    _Event(_ANCHOR, (10, 11)),
    _Event(LOADING, (20, 60)),
    _Event("aten::stack", (30, 40)),
    _Event("aten::mm", (70, 80)),
    _Event("autograd::engine::evaluate_function: Mine", (80, 100)),
    _Event("Optimizer.step#SGD.step", (100, 110)),
)


def test_events_of_the_cpu() -> None:
    times = _Times([(1_030_000, Spot("a.py", 3, "get")), (1_085_000, Spot("a.py", 9, "main"))])
    times.anchor = 1_000_000
    found = read_events(EVENTS, times, "cuda")
    assert found is not None
    assert (found.steps, found.stretch, found.accelerator, found.loader) == (
        1,
        (10, 110),
        "",
        "own",
    )
    parts = found.division
    assert (length(parts.data), length(parts.device), length(parts.host)) == (40, 10, 50)
    assert found.operators == [("aten::mm", 1.0)], "that of the loader is loading"
    assert found.spots["data"] == Counter({Spot("a.py", 3, "get"): 1})
    assert found.spots["host"] == Counter({Spot("a.py", 9, "main"): 1})


def test_events_of_an_accelerator() -> None:
    kernel = _Event("gemm_kernel", (50, 90), "CUDA")
    found = read_events([*EVENTS, kernel], _Times(), "cuda")
    assert found is not None
    assert found.accelerator == "cuda"
    parts = found.division
    assert (length(parts.data), length(parts.device), length(parts.host)) == (30, 40, 30)
    assert found.operators == [("gemm_kernel", 2.0)]


def test_without_a_step_there_is_nothing_to_say() -> None:
    assert read_events(EVENTS[:-1], _Times(), "") is None
    report = report_on_steps("train.py", Outcome(seen=2))
    assert report.failed
    assert "made 2 optimizer steps; at least 3" in report.gaps[0].reason.say("en")


def test_workers_that_are_too_slow() -> None:
    waiting = Spot("a.py", 3, "main", "wait")
    spots = {"data": Counter({waiting: 9}), "device": Counter[Spot](), "host": Counter[Spot]()}
    division = divide((0, 100), [(0, 90)], [(90, 95)], accelerator=False)
    measured = Measured(2, (0, 100), division, "", spots, [], "workers")
    answer = steps_answer("train.py", measured)
    assert answer.headline.en.endswith("the DataLoader's workers are too slow")
    assert answer.next == ("torchstone flow trace train.py",)
    assert "start more of them" in answer.lines[0].en
    assert "torch.compile" not in answer.lines[1].en, "advice is for the largest part"


SCRIPT = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(9):
    if step == {stop}:
        raise ValueError("stop")
    try:
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    except Exception:
        raise SystemExit(7)
open("left", "w").write("all steps")
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Path]:
    monkeypatch.chdir(tmp_path)

    def write(stop: int) -> Path:
        (tmp_path / "train.py").write_text(SCRIPT.replace("{stop}", str(stop)))
        return tmp_path

    return write


def test_the_script_ends_after_the_steps_that_were_asked_for(
    program: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = program(-1)
    assert run(["flow", "steps", "train.py", "--steps", "3", "--lang", "en"]) == 0
    said = capsys.readouterr().out
    assert "mean of 3 steps" in said
    assert "no DataLoader was used" in said
    assert not (folder / "left").exists()


def test_a_script_that_raises_is_a_gap_beside_what_was_measured(
    program: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    program(5)
    assert run(["flow", "steps", "train.py", "--lang", "en"]) == 3
    said = capsys.readouterr().out
    assert "mean of 3 steps" in said
    assert "raised ValueError after 5 optimizer steps" in said


def test_the_number_of_steps_is_checked(
    program: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    program(-1)
    assert run(["flow", "steps", "train.py", "--steps", "0"]) == 2
    assert "--steps" in capsys.readouterr().err
