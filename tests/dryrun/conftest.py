"""Scripts run in copies of this warm process: each saves the seconds that importing torch takes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from torchstone.core.codec import to_data
from torchstone.core.report import Report
from torchstone.dryrun import child
from torchstone.dryrun import run as run_module
from torchstone.dryrun.options import DryRunOptions
from torchstone.dryrun.ranks.play import warm_up
from torchstone.dryrun.script import launch as launch_module
from torchstone.dryrun.script.launch import Outcome
from torchstone.dryrun.settings import ScriptSettings
from torchstone.starting.files.writing import write_files

Run = Callable[..., Report]
_warm = False
"""Whether this process has done once what every copy would do first."""


def launch_copy(settings: ScriptSettings) -> Outcome:
    """As `launch`, in a copy of this process; nothing of the user's outlives it."""
    scratch = tempfile.mkdtemp(prefix="torchstone-dryrun-test-")
    try:
        write_files(settings.supplies, Path(scratch, "files"))
        return _launch_copy(replace(settings, scratch=scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _launch_copy(settings: ScriptSettings) -> Outcome:
    ends = [os.pipe() for _ in range(3)]
    (asked, ask), (told, tell), (printed, to_print) = ends
    pid = os.fork()
    if pid == 0:
        for handle in (ask, told, printed):
            os.close(handle)
        _be_child(asked, tell, to_print)
    for handle in (asked, tell, to_print):
        os.close(handle)
    os.write(ask, json.dumps(to_data(settings)).encode())
    os.close(ask)
    said: list[bytes] = []
    reader = threading.Thread(target=lambda: said.append(_read(printed)))
    reader.start()
    written = _read(told)
    reader.join()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return replace(launch_module.outcome_of(written), output=said[0].decode("utf-8", "replace"))


def _be_child(asked: int, tell: int, to_print: int) -> None:
    try:
        os.setsid()
        for number in (1, 2):
            os.dup2(to_print, number)
        os.close(to_print)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        child.main([str(asked), str(tell)])
    finally:
        os._exit(1)


def _read(handle: int) -> bytes:
    with os.fdopen(handle, "rb") as file:
        return file.read()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the text of a script in a copy of this process."""
    global _warm
    if not _warm:
        warm_up(ScriptSettings())
        _warm = True
    monkeypatch.setattr(run_module, "launch", launch_copy)

    def run_text(text: str, *arguments: str, target: str = "train.py", **options: object) -> Report:
        (folder / target).write_text(text, "utf-8")
        return run_module.dry_run_command(
            DryRunOptions(target=target, arguments=arguments, **options)  # type: ignore[arg-type]
        )

    return run_text
