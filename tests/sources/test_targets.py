"""Which function of the project a call runs."""

from __future__ import annotations

import ast

import pytest

from tests.sources.test_scene import call, scene_of
from torchstone.sources.scene import Scene
from torchstone.sources.targets import (
    class_of_value,
    function_named,
    is_outside,
    method_of,
    target_of,
    unwrapped,
    visible_function,
)

OTHERS = {
    "helpers.py": "def go(): pass\nclass Base:\n    def go(self): pass\n    def deep(self): pass\n",
    "far.py": "from helpers import Base\nclass Far(Base): pass\n",
}
LONG = "".join(f"class C{i}(C{i - 1}): pass\n" for i in range(1, 9))
CASES = [
    ("def go(): pass\ngo()", "sample.py:go"),
    ("def go(): pass\ndef go(): pass\ngo()", ""),
    ("from helpers import go\ngo()", "helpers.py:go"),
    ("import helpers\nhelpers.go()", "helpers.py:go"),
    ("import helpers as h\nh.go()", "helpers.py:go"),
    ("go()", ""),
    ("import torch\ntorch.go()", ""),
    ("class A:\n    def go(self): pass\n    def f(self): self.go()", "sample.py:A.go"),
    ("class A:\n    def go(self): pass\n    @classmethod\n    def f(cls): cls.go()", "sample.py:A.go"),
    ("class A:\n    def f(self): self.go()", ""),
    ("from helpers import Base\nclass A(Base):\n    def f(self): self.go()", "helpers.py:Base.go"),
    ("from far import Far\nclass A(Far):\n    def f(self): self.go()", "helpers.py:Base.go"),
    ("from helpers import Base\nclass A(Base):\n    def go(self): super().go()", "helpers.py:Base.go"),
    ("class A:\n    def go(self): super().go()", ""),
    ("from helpers import Base\na = Base()\na.go()", "helpers.py:Base.go"),
    ("from helpers import Base\ndef f(a: Base): a.go()", "helpers.py:Base.go"),
    ("from helpers import Base\ndef f(a): a.go()", ""),
    ("from helpers import Base\na = Base()\nx.unwrap_model(a).go()", "helpers.py:Base.go"),
    ("from helpers import Base\na = Base()\na.module.go()", "helpers.py:Base.go"),
    (("class A:\n    def go(self): pass\nclass B:\n    def __init__(self): self.a = A()\n"
     "    def f(self): self.a.go()"), "sample.py:A.go"),
    ("def f():\n    def go(): pass\n    go()\ndef g():\n    def go(): pass", "sample.py:f.go"),
    ("class A:\n    def go(self): pass\ngo()", ""),
    ("x().go()", ""),
    ("go[0]()", ""),
]  # fmt: skip


def shown(found: tuple[Scene, ast.AST] | None) -> str:
    return "" if found is None else f"{found[0].path}:{found[0].scope_name(found[1])}"


def last_call(scene: Scene) -> ast.Call:
    return max(scene.all(ast.Call), key=lambda node: (node.lineno, node.end_col_offset or 0))


@pytest.mark.parametrize(("text", "target"), CASES)
def test_targets(text: str, target: str) -> None:
    scene = scene_of(text, others=OTHERS)
    asked = next((c for c in scene.calls.get("go", ()) if "super" not in scene.text(c)[:0]), None)
    asked = asked or last_call(scene)
    assert shown(target_of(scene, asked)) == target
    assert shown(target_of(scene, asked)) == target, "what is kept is the same"
    here = target if target.startswith("sample.py") else ""
    assert shown(target_of(scene, asked, here=True)) == here


def test_classes_are_looked_at_five_steps_up() -> None:
    scene = scene_of("class C0:\n    def go(self): pass\n" + LONG)
    owners = {node.name: node for node in scene.all(ast.ClassDef)}
    assert shown(method_of(scene, owners["C5"], "go")) == "sample.py:C0.go"
    assert method_of(scene, owners["C6"], "go") is None
    assert method_of(scene, owners["C1"], "go", depth=0) is None
    assert shown(method_of(scene, owners["C0"], "go", depth=0)) == "sample.py:C0.go"


def test_functions_by_their_name() -> None:
    scene = scene_of(
        "import helpers\ndef f(): pass\n@f\n@helpers.go\n@g\n@h()\ndef k(): pass\n", others=OTHERS
    )
    decorators = next(f for f in scene.all(ast.FunctionDef) if f.name == "k").decorator_list
    found = [shown(function_named(scene, node)) for node in decorators]
    assert found == ["sample.py:f", "helpers.py:go", "", ""]
    assert isinstance(decorators[0], ast.Name)
    assert visible_function(scene, decorators[0]) is not None


def test_the_class_of_a_value() -> None:
    scene = scene_of(
        "import helpers\nclass A: pass\na = A()\nb = helpers.Base()\nc = f()\na, b, c, A()\n",
        others=OTHERS,
    )
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    assert isinstance(last.value, ast.Tuple)
    found = [shown(class_of_value(scene, node)) for node in last.value.elts]
    assert found == ["sample.py:A", "helpers.py:Base", "", "sample.py:A"]
    assert class_of_value(scene, None) is None


@pytest.mark.parametrize(("text", "inner"), [
    ("a", "a"), ("a.module", "a"), ("a.module.module.module", "a.module"), ("x.unwrap_model(a)", "a"),
    ("extract_model_from_parallel(a.module)", "a"), ("x.unwrap_model()", "x.unwrap_model()"), ("a.b", "a.b"),
])  # fmt: skip
def test_wrapped_models(text: str, inner: str) -> None:
    scene = scene_of(text)
    node = scene.root.body[0]
    assert isinstance(node, ast.Expr)
    found = unwrapped(scene, node.value)
    assert found is not None
    assert scene.text(found) == inner


@pytest.mark.parametrize(("text", "outside"), [
    ("print(1)", True), ("def print(): pass\nprint(1)", False), ("import torch\ntorch.go()", True),
    ("import helpers\nhelpers.go()", False), ("go()", False), ("import tqdm\ntqdm.tqdm()", True),
    ("from helpers import go as print\nprint()", False), ("x.go()", False),
])  # fmt: skip
def test_what_is_known_to_be_outside(text: str, outside: bool) -> None:
    scene = scene_of(text, others=OTHERS)
    assert is_outside(scene, last_call(scene)) is outside


def test_a_call_is_found_by_its_last_name() -> None:
    scene = scene_of("import torch.nn.functional as F\nfrom a import b as c\nF.relu(x)\nc()\n")
    assert scene.text(call(scene, "relu")) == "F.relu(x)"
    assert scene.text(call(scene, "b")) == "c()"
