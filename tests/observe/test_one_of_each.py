"""What the tree has once stays once: counted over the source, so that the figures stay true.

A number here may fall and must not rise.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "torchstone"
MODES = ("TorchDispatchMode", "TorchFunctionMode")


@cache
def texts() -> dict[str, str]:
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text("utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
    }


def classes(word: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Classes of the files in which a word stands: parsing all of them takes a minute."""
    for path, text in texts().items():
        if word in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    yield path, node


def files_that_name(*names: str) -> set[str]:
    """Files in whose code one of these names stands."""
    return {
        path
        for path, text in texts().items()
        if any(name in text for name in names)
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.alias) and node.name in names)
    }


def test_a_line_of_user_code_is_one_class() -> None:
    found = {path for path, node in classes("class Place") if node.name == "Place"}
    # a value on its way through the static analysis is another thing under the same name
    assert found - {"lint/facts/origins.py"} == {"core/place.py"}


def test_whose_file_it_is_is_decided_once() -> None:
    deciding = {path for path, text in texts().items() if '"purelib"' in text}
    # where an environment has its packages is not a question about a line
    others = {"dryrun/ranks/play.py", "starting/interpreters.py"}
    assert deciding - others == {"observe/where.py"}


def test_optimizer_steps_are_hooked_once() -> None:
    names = ("register_optimizer_step_pre_hook", "register_optimizer_step_post_hook")
    others = {
        path for path in files_that_name(*names) if not path.startswith("conductor/experiments/")
    }
    assert others == {"observe/training.py"}


def test_clipping_is_followed_once() -> None:
    found = files_that_name("CLIPPING_STEP") - {"observe/compat/optimizers.py"}
    assert found == {"observe/training.py"}


def test_no_code_object_is_a_key() -> None:
    """Code objects of equal text are equal, whatever their file: a key needs the file, too."""
    keyed = [
        path
        for path, text in texts().items()
        if re.search(r"(dict|set|Counter|defaultdict)\[\(?CodeType\b", text)
    ]
    # the two forms of one file, by the code of that file alone
    assert keyed == ["dataflow/tracing/instrument.py"]


def test_modes_of_torch_do_not_multiply() -> None:
    found = [
        f"{path}:{node.name}"
        for path, node in classes("Mode)")
        if any(ast.unparse(base).endswith(MODES) for base in node.bases)
    ]
    assert len(found) <= 6, found


def test_process_groups_do_not_multiply() -> None:
    found = [
        f"{path}:{node.name}"
        for path, node in classes("ProcessGroup)")
        if any(ast.unparse(base).endswith("ProcessGroup") for base in node.bases)
    ]
    assert found == ["observe/ranks.py:StandInGroup"]


IMPORT = re.compile(r"^([ \t]*)from (torchstone[\w.]*) import (\([^)]*\)|[^\n]+)", re.M)
"""Indented ones are for type checkers, or made when a function is called."""


def imports(everything: bool) -> dict[str, set[str]]:
    """Modules that each module imports: when it is loaded, or ever."""
    names = {
        ".".join(("torchstone", *Path(path).with_suffix("").parts)).removesuffix(".__init__"): text
        for path, text in texts().items()
    }
    graph: dict[str, set[str]] = defaultdict(set)
    for name, text in names.items():
        for indent, module, imported in IMPORT.findall(text):
            if everything or not indent:
                for word in re.findall(r"\w+", imported):
                    full = f"{module}.{word}"
                    graph[name].add(full if full in names else module)
    return graph


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules that reach each other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += graph.get(name, ())
        reached[start] = seen
    found: list[set[str]] = []
    for name, seen in reached.items():
        knot = {other for other in seen if name in reached.get(other, ())}
        if knot and knot not in found:
            found.append(knot)
    return found


# the two knots are of `lint` and of `kernels`
@pytest.mark.parametrize(("everything", "most"), [(False, 0), (True, 2)])
def test_imports_go_one_way(everything: bool, most: int) -> None:
    found = cycles(imports(everything))
    assert len(found) <= most, found


def test_a_knot_is_counted() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"e2"}, "e2": {"e"}}
    assert sorted(map(sorted, cycles(graph))) == [["a", "b", "c"], ["e", "e2"]]


def count_writes() -> Any:
    """The script that counts them, as a module."""
    path = Path(__file__).parents[2] / "scripts" / "count_writes.py"
    spec = importlib.util.spec_from_file_location("count_writes", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["count_writes"] = module
    spec.loader.exec_module(module)
    return module


def test_writes_into_other_objects_do_not_grow() -> None:
    """Attributes that are assigned on anything but the object itself, per 1,000 lines."""
    found, lines = count_writes().count()
    per_package = Counter(write.path.partition("/")[0] for write in found)
    shares = {name: per_package[name] / count * 1000 for name, count in lines.items()}
    assert len(found) / sum(lines.values()) * 1000 <= 3.1
    # what is planted by the samples of signals is most of it
    assert shares["watch"] <= 2.6
    assert [name for name in ("core", "observe", "render", "sources") if shares[name]] == []


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("class A:\n    def f(self):\n        self.a = 1\n", 0),
        ("class A:\n    def f(self):\n        self.a.b = 1\n", 1),
        ("def f(x):\n    x.a = 1\n    x.b += 1\n    x.c: int = 1\n    del x.d\n", 4),
        ("def f(x):\n    x.a, (x.b, *x.c) = y\n", 3),
        ("def f(x):\n    for x.a in y: pass\n", 1),
        ("def f():\n    x = Made()\n    x.a = 1\n    x.a.b = 1\n", 1),
        ("import torch\ntorch.compile = f\n", 0),
        ("def f(x):\n    x.a[0] = 1\n    y = x.a\n", 0),
    ],
)
def test_what_counts_as_a_write(code: str, count: int) -> None:
    assert len(list(count_writes().writes(code, "a.py"))) == count
