"""Versions of packages on which a program insists."""

from __future__ import annotations

import linecache
from types import ModuleType

import pytest

from torchstone.starting.obstacles import StatedVersion
from torchstone.starting.versions import obstacle_of_stated_version


def obstacle_of(statement: str, **names: object) -> object:
    file = f"<{statement}>"
    linecache.cache[file] = (len(statement), None, [f"{statement}\n"], file)
    try:
        exec(compile(statement, file, "exec"), dict(names))
    except AssertionError as error:
        return obstacle_of_stated_version(error)
    raise AssertionError("the statement holds")


@pytest.fixture
def package() -> ModuleType:
    made = ModuleType("somepack")
    made.__version__ = "2.13.0"  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("assert pack.__version__ == '0.3.2'", "0.3.2"),
        ("assert pack.__version__.split('.')[0] == '1'", "1"),
        ("assert pack.__version__.startswith('0.4')", "0.4"),
    ],
)
def test_a_version_with_which_an_assertion_holds(
    statement: str, version: str, package: ModuleType
) -> None:
    assert obstacle_of(statement, pack=package) == StatedVersion("somepack", version, "")
    assert package.__version__ == "2.13.0"


def test_other_assertions_are_the_programs(package: ModuleType) -> None:
    assert obstacle_of("assert 1 == 2") is None
    assert obstacle_of("assert pack.__version__ and size == 3", pack=package, size=1) is None
    bound = "assert float(pack.__version__[:3]) < 1.9"  # names no version below it
    assert obstacle_of(bound, pack=package) is None
