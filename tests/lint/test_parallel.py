"""Files read by several processes give what one process gives."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from torchstone.core.errors import UsageError
from torchstone.lint import parallel
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions
from torchstone.lint.parallel import Progress, Results, processes_for, read_slices, slices
from torchstone.lint.result import Result
from torchstone.sources.discover import File

_HELPER = "import torch\n\ndef loss_of(model, x):\n    return model(x).half().sum()\n"
_TRAIN = """\
import torch
from helper_{n} import loss_of

def train(model, loader, optimizer):
    kept = []
    for x in loader:
        with torch.autocast("cuda"):
            loss = loss_of(model, x)
        loss.backward()
        optimizer.step()
        kept.append(loss)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for n in range(6):
        (tmp_path / f"helper_{n}.py").write_text(_HELPER, "utf-8")
        (tmp_path / f"train_{n}.py").write_text(_TRAIN.format(n=n), "utf-8")
    (tmp_path / "broken.py").write_text("def (:\n", "utf-8")
    return tmp_path


def test_the_report_is_the_same(project: Path) -> None:
    reports = [
        check(CheckOptions(paths=(str(project),), no_cache=True, jobs=jobs)) for jobs in (1, 2, 5)
    ]
    assert len(reports[0].findings) >= 19
    assert reports[0] == reports[1] == reports[2]


def test_what_processes_found_is_in_the_cache(project: Path, tmp_path: Path) -> None:
    options = CheckOptions(paths=(str(project),), jobs=3)
    first = check(options, cache_folder=tmp_path / "cache")
    one = CheckOptions(paths=(str(project),), jobs=1)
    assert check(one, cache_folder=tmp_path / "cache") == first


def _files(count: int) -> list[File]:
    return [File(Path(f"{n}.py"), f"{n}.py", b"x" * 10) for n in range(count)]


def test_what_a_dead_child_leaves_is_read_here() -> None:
    home = os.getpid()

    def read(part: list[File], progress: Progress | None) -> Results:
        if os.getpid() != home:
            os.kill(os.getpid(), signal.SIGKILL)
        return {file.name: Result(lines=1) for file in part}

    found = read_slices(slices(_files(7), [10] * 7, 3), read, None)
    assert sorted(found) == [f"{n}.py" for n in range(7)]


def test_no_child_is_left_behind_by_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    home = os.getpid()
    started: list[int] = []
    fork = os.fork

    def noted() -> int:
        started.append(fork())
        return started[-1]

    monkeypatch.setattr(os, "fork", noted)

    def read(part: list[File], progress: Progress | None) -> Results:
        if os.getpid() == home:
            raise KeyboardInterrupt
        signal.pause()
        return {}

    with pytest.raises(KeyboardInterrupt):
        read_slices(slices(_files(4), [10] * 4, 2), read, None)
    assert len(started) == 1
    with pytest.raises(ChildProcessError):
        os.waitpid(started[0], os.WNOHANG)


def test_every_file_is_in_one_slice_and_slices_are_even() -> None:
    parts = slices(_files(100), list(range(100)), 4)
    assert [file.name for part in parts for file in part] == [f"{n}.py" for n in range(100)]
    weights = [sum(int(file.name[:-3]) for file in part) for part in parts]
    assert max(weights) < 1.2 * min(weights)
    assert slices([], [], 3) == [[], [], []]


def test_small_trees_are_read_by_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert processes_for(parallel.LEAST_BYTES, None) == 1
    assert processes_for(10 * parallel.LEAST_BYTES, None) == parallel.MOST
    assert processes_for(10, 3) == 3


def test_a_negative_number_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--jobs"):
        check(CheckOptions(paths=(str(tmp_path),), jobs=-1))
