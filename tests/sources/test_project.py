"""What the files of one check know of each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchstone.core.gap import Gap
from torchstone.sources.discover import File, with_contents
from torchstone.sources.project import Project, parse, still_parses
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source

TEXTS = {
    "pkg/__init__.py": "from .inner import used as shown\n",
    "pkg/inner.py": "def used(): pass\n_hidden = 1\nalias = used\nif a:\n    def other(): pass\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/deep.py": "from ..inner import *\nfrom torch.nn import *\n",
    "main.py": "import pkg\nfrom pkg import shown\nshown(1)\n",
    "src/lib.py": "value = 1\n",
    "broken.py": "def (",
    "book.ipynb": "{}",
    "latin.py": "# -*- coding: latin-1 -*-\né = 1\n",
}


@pytest.fixture
def project() -> Project:
    return Project(
        File(Path("/nowhere") / name, name, text.encode("latin-1" if "latin" in name else "utf-8"))
        for name, text in TEXTS.items()
    )


def scene(project: Project, name: str) -> Scene:
    tree = parse(Source(name, TEXTS[name]))
    assert isinstance(tree, ast.Module)
    return project.scene(Source(name, TEXTS[name]), tree)


def place(name: str) -> str:
    return f"/nowhere/{name}"


@pytest.mark.parametrize(("module", "importer", "found"), [
    ("pkg", "main.py", "pkg/__init__.py"), ("pkg.inner", "main.py", "pkg/inner.py"),
    ("inner", "pkg/sub/deep.py", "pkg/inner.py"), ("lib", "main.py", "src/lib.py"),
    ("lib", "pkg/inner.py", "src/lib.py"), ("pkg.none", "main.py", None), ("torch", "main.py", None),
    ("pkg", "unknown.py", None),
])  # fmt: skip
def test_modules_are_found(project: Project, module: str, importer: str, found: str | None) -> None:
    for _ in range(2):
        assert project.find(module, importer) == (found and place(found))


@pytest.mark.parametrize(("name", "importer", "resolved"), [
    ("pkg.shown", "main.py", "pkg.inner.used"), ("pkg.inner.alias", "main.py", "pkg.inner.alias"),
    ("pkg.inner.used", "main.py", "pkg.inner.used"), ("pkg.sub.deep.used", "main.py", "pkg.inner.used"),
    ("pkg.sub.deep.other", "main.py", "pkg.inner.other"), ("pkg.sub.deep._hidden", "main.py", "pkg.sub.deep._hidden"),
    ("torch.nn.Linear", "main.py", "torch.nn.Linear"), ("shown", "main.py", "shown"),
    ("pkg.shown.x", "main.py", "pkg.inner.used.x"), ("none.x", "main.py", "none.x"),
])  # fmt: skip
def test_names_are_resolved(project: Project, name: str, importer: str, resolved: str) -> None:
    for _ in range(2):
        assert project.resolve(name, importer) == resolved


@pytest.mark.parametrize(("module", "name", "found"), [
    ("pkg.inner", "used", "pkg.inner.used"), ("pkg.inner", "nothing", ""), ("pkg", "shown", "pkg.inner.used"),
    ("torch.nn", "Linear", "torch.nn.Linear"), ("numpy", "array", ""), ("pkg.sub.deep", "Linear", "torch.nn.Linear"),
    ("pkg.inner", "_hidden", "pkg.inner._hidden"), ("broken", "x", ""),
])  # fmt: skip
def test_stars(project: Project, module: str, name: str, found: str) -> None:
    assert project.star(module, name, "main.py") == found


def test_definitions(project: Project) -> None:
    main = scene(project, "main.py")
    [call] = main.calls["used"] if "used" in main.calls else main.calls["shown"]
    found = project.definition(main, call.func, main.qualified(call.func))
    assert found is not None
    assert (found[0].path, getattr(found[1], "name", "")) == ("pkg/inner.py", "used")
    assert project.class_named(main, call.func, main.qualified(call.func)) is None
    assert project.definition(main, call, "") is None
    inner = scene(project, "pkg/inner.py")
    assert project.definition(inner, ast.Name("other"), "") is not None
    assert project.definition(inner, ast.Name("nothing"), "") is None


@pytest.mark.parametrize(("name", "module"), [
    ("main.py", "main"), ("pkg/__init__.py", "pkg"), ("pkg/inner.py", "pkg.inner"),
    ("pkg/sub/deep.py", "pkg.sub.deep"), ("src/lib.py", "lib"),
])  # fmt: skip
def test_modules_have_names(project: Project, name: str, module: str) -> None:
    assert scene(project, name).module == module
    assert Project().scene(Source("a/b.py", ""), ast.parse("")).module == "b"


def test_what_files_hold(project: Project) -> None:
    assert project.files_that_call("shown") == [place("main.py")]
    assert project.files_that_call("used") == [place("pkg/inner.py")]
    assert project.files_that_call("nothing") == []
    assert project.mentions("value")
    assert project.mentions("value"), "asked again"
    assert not project.mentions("nowhere_at_all")
    assert sorted(project.paths) == sorted(map(place, TEXTS))
    assert project.text_of(place("src/lib.py")) == "value = 1\n"
    assert sorted(project.contents())[0] == b""
    assert len(list(project.contents())) == len(TEXTS)
    both = [place("main.py"), place("src/lib.py")]
    assert project.files_that_name(both, "value") == [place("src/lib.py")]
    assert project.path_named("main.py") == place("main.py")
    assert {"pkg", "lib", "main", "sub"} <= project.tops


def test_files_that_cannot_be_had_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a(1)")
    project = Project([File(tmp_path / "a.py", "a.py"), File(tmp_path / "b.py", "b.py")])
    assert list(project.contents()) == [b"a(1)"]
    [there, gone] = sorted(project.paths)
    assert (project.text_of(there), project.text_of(gone)) == ("a(1)", "")
    assert project.files_that_call("a") == [there]
    assert project.files_that_name([there, gone], "a") == [there]
    main = project.scene(Source("a.py", "a(1)"), ast.parse("a(1)"))
    assert project.load(gone, main) is None


def test_scenes_of_others(project: Project) -> None:
    main = scene(project, "main.py")
    assert project.path_of(main) == place("main.py")
    assert project.load(place("main.py"), main) is main
    other = project.load(place("src/lib.py"), main)
    assert other is not None
    assert other.path == "src/lib.py"
    assert project.load(place("src/lib.py"), main) is other, "kept"
    assert project.named("main.py", main) is main
    assert project.named("src/lib.py", main) is other
    assert project.named("none.py", main) is None
    assert project.load(place("broken.py"), main) is None
    assert project.load(place("book.ipynb"), main) is None
    assert project.load(place("latin.py"), main) is not None
    assert project.parsed("src/lib.py") is other
    project.release()
    assert project.parsed("src/lib.py") is None


def test_what_a_file_needs_of_the_others_is_noted(project: Project) -> None:
    project.begin_file()
    assert not project.is_shared("main.py")
    assert project.find("torch", "main.py") is None
    assert project.missing("main.py") == {"torch"}
    assert not project.is_shared("main.py")
    project.find("pkg", "main.py")
    assert project.shared
    assert project.is_shared("main.py")
    project.begin_file()
    assert not project.shared
    assert project.is_shared("main.py"), "of this file it stays known"
    assert not project.is_shared("src/lib.py")
    for ask in (
        lambda: project.mentions("value"), lambda: project.files_that_call("x"), lambda: project.paths,
    ):  # fmt: skip
        project.begin_file()
        ask()
        assert project.shared


def test_what_does_not_parse_is_a_gap() -> None:
    found = parse(Source("a.py", "print 'a'\n"))
    assert isinstance(found, Gap)
    assert found.failed
    assert "Python 2?" in found.reason.text.en
    assert isinstance(parse(Source("a.py", "x = [" * 3000 + "]" * 3000)), Gap)
    assert isinstance(parse(Source("a.py", "type X = int\n")), ast.Module), "newer syntax"
    assert isinstance(parse(Source("a.ipynb", "await f()\n", (1,), (1,))), ast.Module)


@pytest.mark.parametrize(("before", "after", "parses"), [
    ("a", "b", True), ("a", "b(", False), ("a(", "b", True), ("a(", "b(", False),
    ("a", "type X = int", False), ("type X = int", "type Y = int", True),
])  # fmt: skip
def test_a_change_leaves_a_file_readable(before: str, after: str, parses: bool) -> None:
    import sys

    if sys.version_info >= (3, 12) and "type" in after:
        parses = True
    assert still_parses("a.py", before, after) is parses


def test_contents_are_held_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torchstone.sources.discover._HELD_BYTES", 5)
    files = []
    for name in "abc":
        (tmp_path / name).write_text("1234")
        files.append(File(tmp_path / name, name))
    assert [item.data for item in with_contents(files)] == [b"1234", b"1234", None]
