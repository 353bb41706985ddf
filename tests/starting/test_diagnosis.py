"""From an exception to what the surroundings lack."""

from __future__ import annotations

import subprocess
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.starting.diagnosis import find_obstacle
from torchstone.starting.obstacles import (
    EmptyData,
    MissingCommand,
    MissingFile,
    MissingPackage,
    NoNetwork,
    Obstacle,
    OtherVersion,
)
from torchstone.starting.stand_ins.values import StandIn
from torchstone.starting.versions import raising_package


def raised_by(code: str) -> BaseException:
    try:
        exec(compile(code, "program.py", "exec"), {"subprocess": subprocess})
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import no_such_package.part", MissingPackage("no_such_package")),
        ("open('no/such.txt')", MissingFile("no/such.txt")),
        ("import os; os.listdir('no-such')", MissingFile("no-such", False)),
        ("subprocess.run(['no-such-command'])", MissingCommand("no-such-command")),
        ("raise ValueError('num_samples=0')", EmptyData(("b", "a"))),
        ("subprocess.check_call('false; curl x', shell=True); raise OSError", None),
        ("raise subprocess.CalledProcessError(1, ['/usr/bin/git', 'clone', 'x'])", NoNetwork("/usr/bin/git clone x")),
        ("raise subprocess.CalledProcessError(1, ['make'])", None),
        ("{}['k']", None),
        ("None.x", None),
        ("import torch; torch.no_such_name", None),
        ("try:\n    import no_such_package\nexcept ImportError as e:\n    raise RuntimeError('x') from e", MissingPackage("no_such_package")),
    ],
)  # fmt: skip
def test_causes(code: str, expected: Obstacle | None) -> None:
    found = find_obstacle(raised_by(code), ("a", "b"))
    if "curl" in code:
        assert found == NoNetwork("false; curl x")
    else:
        assert found == expected


def test_names_of_other_versions() -> None:
    found = find_obstacle(raised_by("from numpy import no_such_name"))
    assert isinstance(found, OtherVersion)
    assert (found.package, found.name) == ("numpy", "no_such_name")
    assert found.installed[0].isdigit()
    found = find_obstacle(raised_by("import numpy; numpy.sctypes"))  # refused in its own words
    assert isinstance(found, OtherVersion)
    assert (found.package, found.name) == ("numpy", "sctypes")
    found = find_obstacle(raised_by("import inspect; inspect.no_such_function"))
    assert isinstance(found, OtherVersion)
    assert found.installed.startswith("(Python 3.")


@pytest.mark.parametrize(
    "use",
    [
        lambda value: value + 1,
        lambda value: [*value],
        len,
        lambda value: types.new_class("T", (value.Dataset,)),
    ],
    ids=["sum", "iteration", "length", "base"],
)
def test_a_stand_in_whose_value_is_needed_is_a_missing_package(
    use: Callable[[StandIn], object],
) -> None:
    value = StandIn("pack", "pack.thing", lambda package, what: None)
    with pytest.raises(Exception, match="No module named 'pack'") as caught:
        use(value)
    assert find_obstacle(caught.value) == MissingPackage("pack")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise RuntimeError('No input in data/imgs, put them there')", EmptyData(("{here}/data/imgs", "{here}/x"))),
        ("raise FileNotFoundError('../data/cora.content not found.')", MissingFile("../data/cora.content")),
        ("raise FileNotFoundError(\"unable to open (name = 'a/b.h5', errno = 2)\")", MissingFile("a/b.h5")),
        ("raise RuntimeError('something else')", None),
    ],
)  # fmt: skip
def test_a_complaint_about_a_path_that_was_not_found(
    code: str, expected: Obstacle | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unfound = (str(tmp_path / "x"), str(tmp_path / "data/imgs"))
    if isinstance(expected, EmptyData):
        expected = EmptyData(tuple(path.format(here=tmp_path) for path in expected.paths))
    assert find_obstacle(raised_by(code), unfound) == expected


def test_a_package_for_another_python_is_not_the_programs_fault(tmp_path: Path) -> None:
    home = tmp_path / "site-packages" / "oldpack"
    home.mkdir(parents=True)
    error = raised_by(f"compile('print 1', {str(home / '__init__.py')!r}, 'exec')")
    assert raising_package(error) == "oldpack"
    assert raising_package(raised_by("compile('print 1', 'train.py', 'exec')")) == ""
    assert raising_package(raised_by("{}['k']")) == ""
