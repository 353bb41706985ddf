"""Shared by all tests: golden files, and a cache folder that is nobody's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Two workers on two cores: threads of theirs, and of programs that they start, would only wait for each
# other. Before torch is loaded, which reads it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# the width of the terminal that the tests are started from is no part of what they expect
os.environ.pop("COLUMNS", None)

GOLDEN = Path(__file__).parent / "golden"


# a loaded machine is no failure of the code
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="rewrite the golden files")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    for name in ("NO_COLOR", "FORCE_COLOR", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")


@pytest.fixture(autouse=True)
def no_modules_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imported from its own folder is not what the next one imports by the same name."""
    before, paths = set(sys.modules), list(sys.path)
    yield
    made = str(tmp_path_factory.getbasetemp())
    sys.path[:] = [item for item in sys.path if item in paths or not item.startswith(made)]
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(made):
            del sys.modules[name]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare with a golden file; `make accept` rewrites it."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--accept"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        assert path.exists(), f"no golden file {name}: run `make accept` and read it"
        assert text == path.read_text("utf-8"), f"{name} differs: `make accept` if it should"

    return compare
