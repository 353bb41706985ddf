"""Which environment a program is run with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from torchstone.core.errors import InputError
from torchstone.starting.interpreters import OURS, find_interpreter


def make(
    prefix: Path, version: str = "3.12", torch: bool = True, program: str = sys.executable
) -> Path:
    packages = prefix / f"lib/python{version}/site-packages"
    (packages / "torch").mkdir(parents=True) if torch else packages.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin/python").symlink_to(program)
    return prefix


@pytest.fixture(autouse=True)
def nothing_active(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)


def test_the_environment_of_the_project(tmp_path: Path) -> None:
    assert find_interpreter("", tmp_path) is OURS
    prefix = make(tmp_path / ".venv")
    found = find_interpreter("", tmp_path)
    assert found.prefix == str(prefix)
    assert found.packages == (str(prefix / "lib/python3.12/site-packages"),)


def test_an_activated_environment_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "project/.venv")
    monkeypatch.setenv("VIRTUAL_ENV", str(make(tmp_path / "active")))
    assert find_interpreter("", tmp_path / "project").prefix == str(tmp_path / "active")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert find_interpreter("", tmp_path / "project") is OURS


def test_a_program_of_the_project_is_not_taken_for_an_interpreter(tmp_path: Path) -> None:
    hostile = tmp_path / "evil"
    hostile.write_text("#!/bin/sh\ntouch /tmp/owned\n")
    hostile.chmod(0o755)
    make(tmp_path / ".venv", program=str(hostile))
    assert find_interpreter("", tmp_path) is OURS


@pytest.mark.parametrize(
    ("version", "torch", "said"), [("3.8", True, "Python 3.8"), ("3.12", False, "no torch")]
)
def test_what_does_not_fit_is_refused_where_it_is_named(
    version: str, torch: bool, said: str, tmp_path: Path
) -> None:
    prefix = make(tmp_path / "old", version, torch)
    assert find_interpreter("", tmp_path) is OURS
    with pytest.raises(InputError, match=said):
        find_interpreter(str(prefix), tmp_path)
    with pytest.raises(InputError):
        find_interpreter(str(tmp_path / "missing"), tmp_path)
    assert os.access(prefix / "bin/python", os.X_OK)
