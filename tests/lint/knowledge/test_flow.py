"""What reaches what within a file."""

from __future__ import annotations

import ast

import pytest

from torchstone.lint.knowledge import flow
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene_of(text: str) -> Scene:
    source = Source("sample.py", text)
    tree = parse(source)
    assert isinstance(tree, ast.Module)
    return Project().scene(source, tree)


def calls(scene: Scene, *names: str) -> list[ast.Call]:
    return [scene.calls[name][0] for name in names]


BRANCHES = """\
def f(x):
    if x:
        a()
    else:
        b()
    c()
    try:
        d()
    except ValueError:
        e()
"""


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("a", "b", True), ("a", "c", False), ("d", "e", True), ("c", "d", False)],
)
def test_arms_of_one_branch_exclude_each_other(one: str, other: str, apart: bool) -> None:
    scene = scene_of(BRANCHES)
    assert flow.exclusive(scene, *calls(scene, one, other)) is apart


@pytest.mark.parametrize(
    ("one", "other", "goes"),
    [("a", "c", True), ("a", "b", False), ("c", "a", False), ("g", "h", False), ("h", "i", True)],
)
def test_control_goes_on_unless_it_leaves(one: str, other: str, goes: bool) -> None:
    text = BRANCHES + "    if x:\n        g()\n        return\n    h()\n    i()\n"
    scene = scene_of(text)
    assert flow.reaches(scene, *calls(scene, one, other)) is goes


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("x = one()\nuse(x)", "one()"),
        ("if p:\n    x = one()\nuse(x)", None),
        ("with c:\n    x = one()\nuse(x)", "one()"),
        ("x = one()\nif p:\n    x = two()\nuse(x)", None),
        ("if p:\n    x = one()\n    use(x)", "one()"),
        ("x = one()\nx = two(x)\nuse(x)", "two(x)"),
    ],
)
def test_a_value_is_settled_when_no_branch_leaves_it_open(body: str, value: str | None) -> None:
    scene = scene_of(body + "\n")
    (use,) = calls(scene, "use")
    found = flow.settled(scene, use.args[0])
    assert (scene.text(found) if found is not None else None) == value


def test_a_parameter_is_what_the_callers_of_the_file_pass() -> None:
    scene = scene_of(
        "def train(net, y):\n    use(net)\n\nmodel = Net().cuda()\ntrain(model, 1)\ntrain(model, 2)\n"
    )
    (use,) = calls(scene, "use")
    made = flow.made(scene, use.args[0])
    assert made is not None
    assert scene.text(made) == "Net()"


def test_a_parameter_with_two_sources_is_not_known() -> None:
    scene = scene_of("def f(net):\n    use(net)\n\na = A()\nb = B()\nf(a)\nf(b)\n")
    (use,) = calls(scene, "use")
    made = flow.made(scene, use.args[0])
    assert made is use.args[0]


def test_methods_are_found_in_their_own_class() -> None:
    text = (
        "class A:\n    def go(self):\n        self.run()\n\n    def run(self):\n        pass\n\n"
        "class B:\n    def run(self):\n        pass\n"
    )
    scene = scene_of(text)
    (run,) = calls(scene, "run")
    found = flow.callee(scene, run)
    assert found is not None
    assert scene.scope_name(found[1]) == "A.run"
    assert flow.callers(scene, found[1]) == [run]
