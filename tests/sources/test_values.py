"""Where a value comes from, and what that tells."""

from __future__ import annotations

import ast

import pytest

from tests.sources.test_scene import scene_of
from torchstone.sources.scene import MISSING, Scene
from torchstone.sources.values import count_before


def name(scene: Scene, word: str, place: int = -1) -> ast.Name:
    """A read of a name, the last if nothing else is said."""
    found = [n for n in scene.all(ast.Name) if n.id == word and isinstance(n.ctx, ast.Load)]
    return found[place]


def shown(scene: Scene, node: ast.AST | None) -> str:
    return "" if node is None else scene.text(node)


@pytest.mark.parametrize(
    ("text", "how", "value"),
    [
        ("x = 1\nx", "assign", "1"),
        ("x: int = 1\nx", "assign", "1"),
        ("(x := 1)\nx", "assign", "1"),
        ("x += 1\nx", "augment", ""),
        ("with f() as x:\n    x", "with", "f()"),
        ("for x in y:\n    x", "loop", ""),
        ("for a, x in y:\n    x", "loop", ""),
        ("a, x = f()\nx", "unpack", ""),
        ("a, x = 1, 2\nx", "assign", "2"),
        ("[a, x] = [1, 2]\nx", "assign", "2"),
        ("a, x = *b, 2\nx", "unpack", ""),
        ("a, *x = f()\nx", "unpack", ""),
        ("def f(x):\n    x", "parameter", ""),
        ("f = lambda x: x", "parameter", ""),
        ("del x\nx", "delete", ""),
    ],
)
def test_what_binds_a_name(text: str, how: str, value: str) -> None:
    scene = scene_of(text)
    [found] = scene.bindings(name(scene, "x"))
    assert (found.how, shown(scene, found.value)) == (how, value)


def test_the_innermost_scope_that_binds_a_name() -> None:
    scene = scene_of(
        "x = 1\ndef f():\n    def g():\n        return x\n    x = 2\n    return g\nx\n"
    )
    outer, inner = name(scene, "x", 0), name(scene, "x", -1)
    assert [shown(scene, row.value) for row in scene.bindings(inner)] == ["2"]
    assert [shown(scene, row.value) for row in scene.bindings(outer)] == ["1"]
    assert scene.bindings(ast.Name("nothing")) == []


def test_bindings_are_in_order_and_counted() -> None:
    scene = scene_of("x = 1\nx = 2\nx\nx = 3\n")
    rows = scene.bindings(name(scene, "x"))
    assert [row.position[0] for row in rows] == [1, 2, 4]
    assert count_before(rows, name(scene, "x")) == 2
    assert count_before(rows, scene.root.body[0]) == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = 1\nx", "1"),
        ("x = 1\nx = 2\nx", "2"),
        ("x = 1\nx = f(x)", "1"),
        ("x = f(x)", "f(x)"),
        ("x\nx = 1", ""),
        ("x += 1\nx", ""),
        ("with f() as x:\n    x", "f()"),
        ("for x in y:\n    x", ""),
        ("x = 1\ndef f():\n    return x", "1"),
        ("x = 1\nx = 2\ndef f():\n    return x", ""),
        ("y", ""),
        ("x.y", ""),
    ],
)
def test_the_value_of_a_name(text: str, value: str) -> None:
    scene = scene_of(text)
    reads = [n for n in scene.all(ast.Name) if isinstance(n.ctx, ast.Load) and n.id in "xy"]
    assert shown(scene, scene.value(reads[-1])) == value


CLASS = """
class A:
    def __init__(self, p):
        self.a = 1
        self.a = f()
        self.b, self.c = 1, 2
        self.d, self.e = g()
        self.f: int = 3
        self.add_module("h", H())
        self.register_module("i", H())
        self.register_module(p, H())
        other.a = 4
        self.g: int

    def use(self):
        return self.d, self.f, self.g, self.a
"""


@pytest.mark.parametrize(
    ("attribute", "values", "sources"),
    [
        ("a", ["1", "f()"], [("1", None), ("f()", None)]),
        ("b", ["1"], [("1", None)]),
        ("c", ["2"], [("2", None)]),
        ("d", [], [("g()", 0)]),
        ("e", [], [("g()", 1)]),
        ("f", ["3"], [("3", None)]),
        ("g", [], []),
        ("h", ["H()"], [("H()", None)]),
        ("i", ["H()"], [("H()", None)]),
    ],
)
def test_what_a_class_assigns_to_itself(
    attribute: str, values: list[str], sources: list[tuple[str, int | None]]
) -> None:
    scene = scene_of(CLASS)
    [owner] = scene.all(ast.ClassDef)
    found = [
        (scene.text(value), place) for value, place in scene.attribute_sources(owner, attribute)
    ]
    assert found == sources
    assert [scene.text(value) for value in scene.attribute_values(owner, attribute)] == values


@pytest.mark.parametrize(("text", "origin"), [
    ("x = f()\nx", "f()"), ("x = f()\ny = x\ny", "f()"), ("x = f().cuda().eval()\nx", "f()"),
    ("x = f().detach()\nx", "f().detach()"), ("x", "x"), ("x = y\ny = x\nx", "y"),
])  # fmt: skip
def test_origins(text: str, origin: str) -> None:
    scene = scene_of(text)
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    assert shown(scene, scene.origin(last.value)) == origin


def test_the_origin_of_an_attribute() -> None:
    scene = scene_of(CLASS)
    last = {scene.text(node): node for node in scene.all(ast.Attribute)}
    assert shown(scene, scene.origin(last["self.f"])) == "3"
    assert shown(scene, scene.origin(last["self.a"])) == "self.a", "set in two places"
    assert scene.origin(None) is None


@pytest.mark.parametrize(("text", "value"), [
    ("1", 1), ("'a'", "a"), ("-1", -1), ("-1.5", -1.5), ("- 'a'", MISSING), ("not 1", MISSING),
    ("x", MISSING), ("f()", MISSING), ("k", 7), ("two", MISSING), ("None", None), ("True", True),
])  # fmt: skip
def test_literals(text: str, value: object) -> None:
    scene = scene_of(f"k = 7\ntwo = 1\ntwo = 2\n{text}\n")
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    found = scene.literal(last.value)
    assert found is MISSING if value is MISSING else found == value


@pytest.mark.parametrize(("text", "dtype"), [
    ("x.half()", "float16"), ("x.half(1)", ""), ("x.float()", "float32"), ("x.byte()", "uint8"),
    ("torch.zeros(2)", "float32"), ("torch.zeros(2, dtype=torch.half)", "float16"),
    ("torch.zeros(2, dtype=d)", "bfloat16"), ("torch.zeros(2, dtype=k)", ""),
    ("x.to(torch.bfloat16)", "bfloat16"), ("x.to('cuda', torch.double)", "float64"),
    ("x.half().to('cuda')", "float16"), ("x.half().to(device)", "float16"), ("x.half().to(other)", ""),
    ("x.type('torch.float16')", "float16"), ("x.to('half')", ""), ("x.half().view(2)", "float16"),
    ("x.half().item()", ""), ("torch.relu(x.half())", "float16"), ("torch.relu()", ""),
    ("x.half() + x.half()", "float16"), ("x.half() + x", ""), ("x.half() + 1", "float16"),
    ("1 + x.half()", "float16"), ("x.long() + 1", "int64"), ("x.long() + 1.5", ""),
    ("x.long() / 2", ""), ("x.half() / 2", "float16"), ("-x.half()", "float16"),
    ("x.half()[0]", "float16"), ("x.long().sum()", "int64"), ("x.int().sum()", "int64"),
    ("x.long().mean()", ""), ("x.half().mean()", "float16"), ("x.long().view(1)", "int64"), ("f(x)", ""),
    ("h", "float16"), ("branched", ""), ("x", ""), ("1", ""),
])  # fmt: skip
def test_dtypes_of_expressions(text: str, dtype: str) -> None:
    scene = scene_of(
        "import torch\nd = torch.bfloat16\nk = other\nh = x.half()\n"
        f"if a:\n    branched = x.half()\n{text}\n"
    )
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    assert scene.dtype(last.value) == dtype
    assert scene.is_half(last.value) is (dtype in ("float16", "bfloat16"))


def test_a_value_of_the_same_branch_is_known() -> None:
    scene = scene_of("if a:\n    y = x.half()\n    y\nelse:\n    y = x.float()\n    y\n")
    reads = [n for n in scene.all(ast.Name) if n.id == "y" and isinstance(n.ctx, ast.Load)]
    assert [scene.dtype(node) for node in reads] == ["float16", "float32"]


@pytest.mark.parametrize(("text", "model", "optimizer"), [
    ("m = torch.nn.Linear(1, 1)\nm", True, False), ("m = torch.nn.Parameter(x)\nm", False, False),
    ("m = torch.nn.functional.relu(x)\nm", False, False), ("m = torchvision.models.resnet18()\nm", True, False),
    ("m = A.from_pretrained('a')\nm", True, False), ("m = Net()\nm", True, False), ("m = Other()\nm", False, False),
    ("netG", True, False), ("my_model", True, False), ("modelling", False, False),
    ("z.parameters()\nz", True, False), ("z.state_dict()\nz", True, False),
    ("z.state_dict()\nz.step()\nz", False, False), ("z.step()\nz.zero_grad()\nz", False, True),
    ("z.step()\nz", False, False), ("z.zero_grad()\nz", False, False),
    ("o = torch.optim.SGD(p)\no", False, True), ("s = torch.optim.lr_scheduler.StepLR(o)\ns", False, False),
    ("optimizer_d", False, True), ("optimizers[0]", False, True), ("optional", False, False),
])  # fmt: skip
def test_models_and_optimizers(text: str, model: bool, optimizer: bool) -> None:
    scene = scene_of(
        "import torch, torchvision\nclass Net(torch.nn.Module): pass\nclass Other: pass\n" + text
    )
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    assert (scene.is_model(last.value), scene.is_optimizer(last.value)) == (model, optimizer)
