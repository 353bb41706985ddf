"""A tracer takes every loaded file that is not installed for the user's: here, the test module and its helpers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchstone.observe.where import LIBRARY, PROGRAM

_HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def _other_tests_are_not_the_users(request: pytest.FixtureRequest) -> Iterator[None]:
    """Rewriting all of them at every start of a trace takes most of a minute. Only while a module of this folder
    runs: the answer to whose a file is is shared by all tools."""
    loaded = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    others = [
        name
        for name in loaded
        if name.startswith(f"{_HERE.parent}/")
        and name != str(request.path)
        and (not name.startswith(f"{_HERE}/") or Path(name).name.startswith("test_"))
    ]
    with pytest.MonkeyPatch.context() as patch:
        for name in others:
            patch.setitem(PROGRAM._kinds, name, LIBRARY)
        yield
