"""`--python`: the interpreter of the environment that is tried."""

from __future__ import annotations

import sys

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--python", default=sys.executable, help="interpreter of the environment")


@pytest.fixture(scope="session")
def python(request: pytest.FixtureRequest) -> str:
    chosen: str = request.config.getoption("--python", sys.executable)
    return chosen
