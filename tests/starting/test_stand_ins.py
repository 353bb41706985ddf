"""Stand-ins take what loggers, plots and progress bars are asked, and write it down."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator

import pytest

from torchstone.starting.stand_ins.finder import StandInFinder

USES = [
    "import logbook.writer as w; w.Writer('x').add_scalar('loss', 0.1, 3)",
    "from barpack import bar\nassert [x for x in bar([1, 2], desc='d')] == [1, 2]\nassert len(bar([1])) == 1",
    "import plots\nfig, ax = plots.subplots()\nax.plot([1])\nwith plots.style('x'):\n    ax[0].set(title='t')",
    "from marks import mark\n@mark\ndef f(): return 3\nassert f() == 3",
    "import logbook\nif logbook.run: raise SystemExit(1)\nassert f'{logbook.score():.2f}' == '0.00'",
    "import logbook\ntry:\n    raise KeyError\nexcept (logbook.CommError, KeyError): pass",
    "import logbook\nassert not isinstance(3, logbook.Run)\ndef f(x: logbook.Run | None): pass",
]


@pytest.fixture
def noted() -> Iterator[list[str]]:
    found: list[str] = []
    before = set(sys.modules)
    finder = StandInFinder(
        ["logbook", "barpack", "plots", "marks"], lambda name: name == "program.py",
        lambda package, what: found.append(f"{package}: {what}"),
    )  # fmt: skip
    sys.meta_path.append(finder)
    yield found
    sys.meta_path.remove(finder)
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("code", USES)
def test_uses(code: str, noted: list[str]) -> None:
    exec(compile(code, "program.py", "exec"), {})
    assert noted


def test_libraries_do_not_see_them(noted: list[str]) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("logbook")
    assert importlib.util.find_spec("logbook") is None
    with pytest.raises(ModuleNotFoundError):
        exec(compile("import other_package", "program.py", "exec"), {})
    assert not noted
