"""From an exception to what the surroundings lack."""

from __future__ import annotations

import subprocess
import types
from collections.abc import Callable

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
    found = find_obstacle(raised_by("import inspect; inspect.no_such_function"))
    assert isinstance(found, OtherVersion)
    assert found.installed.startswith("(Python 3.")


@pytest.mark.parametrize(
    "use",
    [
        lambda value: value + 1,
        lambda value: [*value],
        len,
        lambda value: types.new_class("T", (value,)),
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
