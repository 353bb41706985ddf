"""Programs that do not want to end, or reach for what is not theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dryrun.conftest import Run
from torchstone.core.errors import UsageError
from torchstone.dryrun.options import DryRunOptions
from torchstone.dryrun.run import settings_of

STEP = """
import os, signal, time, torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
"""


def test_a_program_that_catches_everything_is_ended_all_the_same(run: Run) -> None:
    report = run(
        STEP + "while True:\n    try:\n        step()\n    except BaseException:\n        pass\n"
    )
    (steps,) = (item for item in report.measures if item.name == "optimizer_steps")
    assert steps.value == 4
    assert not report.gaps


def test_a_handler_of_its_own_does_not_keep_a_program_alive(run: Run) -> None:
    text = (
        STEP
        + "signal.signal(signal.SIGALRM, lambda *_: None)\nsignal.alarm(0)\nstep()\ntime.sleep(100)\n"
    )
    (gap,) = run(text, max_seconds=2.0).gaps
    assert "still running after 2 s" in gap.reason.say("en")
    assert not gap.failed


def test_a_loop_without_a_step_is_not_told_as_a_program_that_runs(run: Run) -> None:
    report = run("import torch\nwhile True:\n    pass\n", max_seconds=1.0)
    (gap,) = report.gaps
    assert gap.failed
    assert report.answer is not None
    assert "Stopped" in report.answer.headline.en


def test_other_processes_are_not_signalled(run: Run) -> None:
    (gap,) = run(STEP + "os.kill(os.getppid(), signal.SIGCONT)\n").gaps
    assert "signals a process" in gap.reason.say("en")
    assert not run(
        STEP + "if (child := os.fork()) == 0:\n    time.sleep(9)\nos.kill(child, 9)\n"
    ).gaps


def test_a_file_of_the_user_is_not_cut_off(run: Run, folder: Path) -> None:
    (folder / "kept.txt").write_text("kept")
    report = run(STEP + "os.truncate('kept.txt', 0)\nassert not open('kept.txt').read()\n")
    assert not report.findings
    assert (folder / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize(
    "options",
    [
        {"max_seconds": float("nan")},
        {"symbolic": "B"},
        {"input": ("3,3",)},
        {"world_size": 4, "local_world_size": 5},
        {"target": "module:Model", "symbolic": "B;T,,"},
        {"target": "module:Model", "symbolic": "B,B"},
    ],
)
def test_nonsense_is_refused(options: dict[str, object], folder: Path) -> None:
    (folder / "train.py").write_text("")
    with pytest.raises(UsageError):
        settings_of(DryRunOptions(**{"target": "train.py", **options}))  # type: ignore[arg-type]


def test_a_program_that_starts_more_ranks_than_are_played_is_not_accused(run: Run) -> None:
    text = (
        "import torch\nimport torch.multiprocessing as mp\n"
        "def work(rank, world): raise SystemExit(3)\n"
        "if __name__ == '__main__':\n    mp.spawn(work, args=(512,), nprocs=512)\n"
    )
    report = run(text)
    (gap,) = report.gaps
    assert not report.findings
    assert "starts its ranks itself" in gap.reason.say("en")
    assert "--world-size" in gap.close
