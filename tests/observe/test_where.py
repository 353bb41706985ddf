"""Which line of the user's code is running: one answer for every tool."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import subprocess
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import torchstone
from torchstone.core.place import NOWHERE, Place
from torchstone.observe.where import HIDDEN, LIBRARY, OWN, STANDARD, Kind, Where, scope_of


def load(path: Path, text: str, **names: Any) -> types.ModuleType:
    """A file of the user's, run as a module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    module = types.ModuleType(path.stem)
    vars(module).update(names)
    exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
    return module


@pytest.fixture
def where(tmp_path: Path) -> Where:
    return Where(root=tmp_path)


def test_equal_functions_of_two_files_stand_in_their_own(tmp_path: Path, where: Where) -> None:
    text = "def head(x):\n    return ask()\n"
    first = load(tmp_path / "first.py", text, ask=where.own)
    second = load(tmp_path / "second.py", text, ask=where.own)
    assert first.head.__code__ == second.head.__code__  # the trap: equal, and of two files
    assert first.head(1) == Place("first.py", 2, "head")
    assert second.head(1) == Place("second.py", 2, "head")


def test_the_same_line_is_the_same_object(tmp_path: Path, where: Where) -> None:
    module = load(tmp_path / "user.py", "def f():\n    return ask()\n", ask=where.own)
    assert module.f() is module.f()


DECORATED = """\
import functools
def wrap(g):
    @functools.wraps(g)
    def inner():
        return g()
    return inner
@wrap
def f():
    return ask()
"""
EXECUTED = """\
def f():
    box = {}
    exec("a = 1\\nv = ask()", {"ask": ask}, box)
    return box["v"]
"""


@pytest.mark.parametrize(
    ("text", "line", "scope"),
    [
        ("f = lambda: ask()\n", 1, "<lambda>"),
        ("def f():\n    return [ask() for _ in range(1)][0]\n", 2, "f"),
        (
            "class A:\n    def g(self):\n        return ask()\ndef f():\n    return A().g()\n",
            3,
            "A.g",
        ),
        (DECORATED, 9, "f"),
        ("def f():\n    def inner():\n        return ask()\n    return inner()\n", 3, "f.inner"),
        ("def f():\n    return eval('ask()')\n", 2, "f"),
        (EXECUTED, 3, "f"),
    ],
)
def test_lambdas_decorators_comprehensions_and_exec(
    tmp_path: Path, where: Where, text: str, line: int, scope: str
) -> None:
    module = load(tmp_path / "user.py", text, ask=where.own)
    assert module.f() == Place("user.py", line, scope)


def test_a_library_between_two_frames_of_the_user_is_passed_over(tmp_path: Path) -> None:
    where = Where(start=tmp_path)
    library = load(tmp_path / "lib/site-packages/lib.py", "def call(f):\n    return f()\n")
    user = load(
        tmp_path / "user.py",
        "def inner():\n    return ask()\ndef f():\n    return call(inner)\n",
        ask=lambda: (where.here(2), where.nearest(2), where.library(2), where.stack(2)[:2]),
        call=library.call,
    )
    here, nearest, between, stack = user.f()
    assert here == nearest == Place("user.py", 2, "inner")
    assert between is NOWHERE
    assert stack == (Place("user.py", 2, "inner"), Place("user.py", 4, "f"))


def test_a_library_is_named_where_it_stands_before_torch(tmp_path: Path) -> None:
    where = Where(start=tmp_path)
    library = load(
        tmp_path / "lib/site-packages/lib.py",
        "def g():\n    return ask()\n",
        ask=lambda: (where.here(2), where.nearest(2), where.library(2)),
    )
    user = load(tmp_path / "user.py", "def f():\n    return g()\n", g=library.g)
    here, nearest, between = user.f()
    assert here == Place("user.py", 2, "f")
    assert nearest == between == Place("lib/site-packages/lib.py", 2, "g")


def test_frames_of_torch_are_passed_over(tmp_path: Path, where: Where) -> None:
    net = load(
        tmp_path / "net.py",
        "from torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return ask()\n",
        ask=where.own,
    ).Net()
    assert torch.nn.Sequential(net)(1) == Place("net.py", 4, "Net.forward")


def test_generated_methods_count_as_the_line_that_calls_them(tmp_path: Path, where: Where) -> None:
    text = (
        "from dataclasses import dataclass, field\n@dataclass\nclass A:\n"
        "    place: object = field(default_factory=ask)\ndef f():\n    return A().place\n"
    )
    assert load(tmp_path / "user.py", text, ask=where.own).f() == Place("user.py", 6, "f")


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (torch.nn.functional.__file__, HIDDEN),
        (torchstone.__file__, HIDDEN),
        (dataclasses.__file__, STANDARD),
        (collections.__file__, STANDARD),
        (pytest.__file__, LIBRARY),
        ("/home/user/.local/lib/python3.11/site-packages/x/y.py", LIBRARY),
        ("/usr/lib/python3/dist-packages/x.py", LIBRARY),
        (f"{sysconfig.get_path('stdlib')}-project/train.py", OWN),
        ("/tmp/ipykernel_12/345.py", OWN),
        ("<ipython-input-3-0123>", OWN),
        ("<stdin>", OWN),
        ("<string>", HIDDEN),
        ("<eval_with_key>.7", HIDDEN),
        ("<frozen importlib._bootstrap>", HIDDEN),
        ("<attrs generated init user.A>", HIDDEN),
    ],
)
def test_whose_code_a_file_is(file: str, kind: Kind) -> None:
    assert Where().kind_of(file) is kind


def test_files_outside_the_root_are_not_the_users_own(tmp_path: Path, where: Where) -> None:
    assert where.is_own(str(tmp_path / "a.py"))
    assert not where.is_own(str(tmp_path.parent / "b.py"))
    assert not where.is_own(str(tmp_path / ".venv/lib/site-packages/c.py"))


PROGRAM = """\
from torchstone.observe.where import PROGRAM


def f():
    return PROGRAM.here()


print(f())
"""


@pytest.mark.parametrize(("arguments", "path"), [(["-"], "<stdin>"), (["-c", PROGRAM], "<string>")])
def test_programs_without_a_file(arguments: list[str], path: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments], input=PROGRAM, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{path}:5\n"


@contextlib.contextmanager
def _raised(function: Callable[[], object]) -> Iterator[BaseException]:
    try:
        function()
    except ZeroDivisionError as error:
        yield error


def test_the_lines_that_an_error_went_through(tmp_path: Path, where: Where) -> None:
    user = load(tmp_path / "u.py", "def g():\n    return 1 / 0\ndef f():\n    return g()\n")
    with _raised(user.f) as error:
        assert where.raised(error.__traceback__) == [Place("u.py", 4, "f"), Place("u.py", 2, "g")]


def test_paths_stay_relative_to_the_first_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = Where(start=tmp_path)
    user = load(tmp_path / "user.py", "def f():\n    return ask()\n", ask=where.own)
    monkeypatch.chdir("/")
    assert user.f() == Place("user.py", 2, "f")


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("<module>", ""),
        ("<module>.<listcomp>", ""),
        ("f.<locals>.g", "f.g"),
        ("f.<locals>.<lambda>", "f.<lambda>"),
        ("A.f.<locals>.<genexpr>", "A.f"),
        ("<listcomp>", ""),
        ("", ""),
    ],
)
def test_scopes(name: str, scope: str) -> None:
    assert scope_of(name) == scope


def test_another_start_names_files_anew(tmp_path: Path) -> None:
    where = Where(start=tmp_path)
    user = load(tmp_path / "a/user.py", "def f():\n    return ask()\n", ask=where.own)
    assert user.f() == Place("a/user.py", 2, "f")
    where.start_in(tmp_path / "a")
    assert user.f() == Place("user.py", 2, "f")
    assert where.file_of(user.f()) == str(tmp_path / "a/user.py")
    assert where.file_of(Place("never seen.py", 1)) == "never seen.py"


def test_checks_of_torch_itself_ask_for_torch(tmp_path: Path, where: Where) -> None:
    text = (
        "class Asked:\n    def __bool__(self):\n        answers.append(ask())\n"
        "        return True\ndef user():\n    bool(Asked())\n"
    )
    answers: list[bool] = []
    user = load(tmp_path / "user.py", text, ask=lambda: where.is_asked_by_torch(3), answers=answers)
    user.user()
    assert answers == [False]
    asked = compile("ask()", f"{Path(torch.__file__).parent}/distributions/some.py", "eval")
    handed = compile("ask()", f"{Path(torch.__file__).parent}/_tensor.py", "eval")
    inside = compile("ask()", f"{Path(torch.__file__).parent}/utils/_some.py", "eval")
    names = {"ask": where.is_asked_by_torch}
    assert [eval(code, dict(names)) for code in (asked, handed, inside)] == [True, False, False]


def test_every_answer_about_one_line(tmp_path: Path, where: Where) -> None:
    """With a root; from a frame, from a depth, of a line that is not the running one."""
    user = load(
        tmp_path / "user.py",
        "def f():\n    return ask()\ndef g():\n    return f()\n",
        ask=lambda: (
            where.around(sys._getframe(1)), where.here(2), where.own(3), where.nearest(2), where.library(2),
            where.stack(2), where.line_of(sys._getframe(1), 7), where.stack(3),
        ),
    )  # fmt: skip
    around, here, outer, nearest, library, stack, other, shorter = user.g()
    inner, caller = Place("user.py", 2, "f"), Place("user.py", 4, "g")
    assert (around, here, nearest, outer, library) == (inner, inner, inner, caller, NOWHERE)
    assert stack == (inner, caller)
    assert shorter == (caller,)
    assert other == Place("user.py", 7, "f")


def test_where_there_is_no_line_of_the_user(tmp_path: Path) -> None:
    where = Where(root=tmp_path / "empty")
    assert where.own() is NOWHERE
    assert where.stack() == ()
    assert where.around(None) is NOWHERE
    assert where.here() == where.nearest() != NOWHERE, "a library at least: this test"
    assert where.last_raised(ValueError()) is NOWHERE


def test_errors_down_to_another_kind_of_code(tmp_path: Path, where: Where) -> None:
    library = load(tmp_path / "lib/site-packages/lib.py", "def g():\n    return 1 / 0\n")
    user = load(tmp_path / "u.py", "def f():\n    return g()\n", g=library.g)
    with _raised(user.f) as error:
        assert where.last_raised(error) == Place("u.py", 2, "f")
        assert where.last_raised(error, LIBRARY).line == 2
        assert [item.path for item in where.raised(error.__traceback__, LIBRARY)][-2:] == [
            "u.py", "lib/site-packages/lib.py"
        ]  # fmt: skip


def test_paths_are_shown_relative_to_what_holds_them(tmp_path: Path) -> None:
    where = Where(root=tmp_path / "project", start=tmp_path)
    packages = sysconfig.get_path("purelib")
    assert where.shown(str(tmp_path / "project" / "a.py")) == "a.py"
    assert where.shown(str(tmp_path / "other" / "a.py")) == "other/a.py"
    assert where.shown(f"{packages}/lib/a.py") == "lib/a.py"
    assert where.shown("/somewhere/else.py") == "/somewhere/else.py"
    assert where.shown(f"{tmp_path}/projects.py") == "projects.py", "a folder ends with its name"
    assert where.place("/somewhere/else.py", 3, "A.f") == Place("/somewhere/else.py", 3, "A.f")
