"""C files of the package are built once, into a folder that only the user can write to."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from torchstone.runtime.c_library import load_c_library


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "twice.c"
    path.write_text("int twice(int x) { return 2 * x; }\n")
    return path


def test_a_source_is_built_once(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = load_c_library(source)
    assert isinstance(library, ctypes.CDLL), library
    assert library.twice(21) == 42
    monkeypatch.setenv("PATH", "")
    assert isinstance(load_c_library(source), ctypes.CDLL), "kept: no compiler is needed again"


def test_a_source_that_does_not_compile_gives_the_compilers_reason(source: Path) -> None:
    source.write_text("int twice(int x) { return 2 * ; }\n")
    assert "failed" in str(load_c_library(source))


def test_no_compiler_is_a_reason(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "no C compiler" in str(load_c_library(source))


def test_a_library_that_others_may_write_is_not_loaded(source: Path) -> None:
    folder = source.parent / "cache" / "torchstone"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert "can be written by others" in str(load_c_library(source))
