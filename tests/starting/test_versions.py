"""Versions of packages on which a program insists."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import ModuleType

import pytest

from torchstone.starting.obstacles import OtherModule, StatedVersion
from torchstone.starting.versions import obstacle_of_import, obstacle_of_stated_version


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


@pytest.mark.parametrize(
    ("source", "is_found"), [("def load(): pass", True), ("load = 1", True), ("", False)]
)
def test_another_module_of_the_project_with_the_name(
    source: str, is_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src/reading").mkdir(parents=True)
    (tmp_path / "README.md").touch()
    (tmp_path / "src/reading/__init__.py").touch()
    (tmp_path / "src/reading/reading.py").write_text(source)
    (tmp_path / "train.py").write_text("from reading import load\n")
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    monkeypatch.delitem(sys.modules, "reading", raising=False)
    with pytest.raises(ImportError) as caught:
        exec(compile("from reading import load", str(tmp_path / "train.py"), "exec"), {})
    found = obstacle_of_import(caught.value)
    sys.modules.pop("reading")
    folder = str(tmp_path / "src/reading")
    assert found == (OtherModule("reading", "load", folder) if is_found else None)


def test_other_assertions_are_the_programs(package: ModuleType) -> None:
    assert obstacle_of("assert 1 == 2") is None
    assert obstacle_of("assert pack.__version__ and size == 3", pack=package, size=1) is None
    bound = "assert float(pack.__version__[:3]) < 1.9"  # names no version below it
    assert obstacle_of(bound, pack=package) is None
