"""A tracer takes every loaded file that is not installed for the user's: here, the files of these tests alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchstone.observe.where import LIBRARY, PROGRAM

_HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def _other_tests_are_not_the_users() -> Iterator[None]:
    """Rewriting all of them at every start of a trace takes most of a minute. Only while tests of this folder
    run: the answer to whose a file is is shared by all tools."""
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    others = [
        name
        for name in loaded
        if name and name.startswith(f"{_HERE.parent}/") and not name.startswith(f"{_HERE}/")
    ]
    with pytest.MonkeyPatch.context() as patch:
        for name in others:
            patch.setitem(PROGRAM._kinds, name, LIBRARY)
        yield
