"""Names that tell one rank from the others."""

from __future__ import annotations

import ast

import pytest

from tests.sources.test_scene import scene_of
from torchstone.sources.project import Project, parse
from torchstone.sources.ranks import is_rank_test
from torchstone.sources.source import Source


def asked(test: str, setup: str = "") -> bool:
    source = Source("sample.py", f"import os\nimport torch.distributed as dist\n{setup}\n{test}\n")
    tree = parse(source)
    assert isinstance(tree, ast.Module)
    scene = Project().scene(source, tree)
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    return is_rank_test(scene, last.value)


@pytest.mark.parametrize(
    "test",
    [
        "rank == 0",
        "not dist.get_rank()== 0",
        "is_main_process()",
        "trainer.is_world_process_zero()",
        "self.is_local_process_zero",
        "trainer.is_global_zero",
        "accelerator.is_main_process",
        "args.local_rank in [-1, 0]",
        "int(os.environ['RANK']) == 0",
    ],
)
def test_what_differs_between_ranks(test: str) -> None:
    assert asked(test)


@pytest.mark.parametrize(
    "test",
    ["rank is None", "local_rank == -1", "dist.is_initialized()", "world_size > 1", "is_ready()"],
)
def test_what_is_the_same_on_all(test: str) -> None:
    assert not asked(test)


@pytest.mark.parametrize(
    ("test", "setup", "differs"),
    [
        ("flag", "flag = rank == 0", True),
        ("flag", "flag = size == 0", False),
        ("not flag", "flag = rank == 0", True),
        ("flag and other", "flag = rank == 0", True),
        ("flag or other", "", False),
        ("f()", "def f():\n    return dist.get_rank() == 0", True),
        ("f()", "def f():\n    if dist.get_rank() == 0:\n        return 1", False),
        ("f()", "def f():\n    return g()\ndef g():\n    return rank == 0", True),
        ("f()", "def f():\n    return f()", False),
        ("rank >= 0", "", False),
        ("rank < 0", "", False),
        ("rank > 0", "", True),
        ("rank % 2 == 0", "", True),
        ("0 == 2 + rank", "", True),
        ("dist.get_node_local_rank() == 0", "", True),
        ("x.get_local_rank() == 0", "", True),
        ("os.getenv('LOCAL_RANK') == '0'", "", True),
        ("os.getenv('HOME') == '0'", "", False),
        ("os.environ.get('RANK') == '0'", "", True),
        ("os.environ['HOME'] == '0'", "", False),
        ("int(dist.get_rank()) == 0", "", True),
        ("len(x) == 0", "", False),
        ("r == 0", "r = dist.get_rank()", True),
        ("r == 0", "r = 1", False),
        ("rank is not None", "", False),
        ("0", "", False),
    ],
)
def test_conditions(test: str, setup: str, differs: bool) -> None:
    assert asked(test, setup) is differs


def test_an_attribute_that_is_set_in_one_place() -> None:
    text = "class A:\n    def __init__(self):\n        self.main = rank == 0\n        self.two = rank == 0\n"
    text += "        self.two = 1\n        self.r = dist.get_rank()\n    def f(self):\n"
    text += "        self.main\n        self.two\n        self.r == 0\n        other.main\n"
    scene = scene_of(f"import torch.distributed as dist\n{text}")
    [method] = [item for item in scene.definitions if item.name == "f"]
    tests = [item.value for item in method.body if isinstance(item, ast.Expr)]
    assert [is_rank_test(scene, test) for test in tests] == [True, False, True, False]


BRANCHES = """\
def only(function):
    def inner(*args):
        if rank == 0:
            function(*args)
    return inner
def always(function):
    def inner(*args):
        function(*args)
    return inner
@only
def a(): here_a()
@always
def b(): here_b()
@rank_zero_only
def c(): here_c()
@main_process_only()
def d(): here_d()
def e():
    if rank == 0:
        here_e()
    else:
        there_e()
def f():
    if rank != 0:
        return
    here_f()
def g():
    if rank != 0:
        log()
    here_g()
def h():
    for x in y:
        if rank != 0:
            continue
        here_h()
    there_h()
def i():
    here_i() if rank == 0 else there_i()
def j():
    while rank == 0:
        here_j()
def k():
    if rank != 0:
        raise E
    else:
        pass
    here_k()
def l():
    if here_l() == rank:
        pass
def m():
    if rank == 0:
        return lambda: here_m()
def n():
    if size == 0:
        return
    here_n()
"""


@pytest.mark.parametrize(
    ("name", "early", "arm"),
    [
        ("here_a", True, ""), ("here_b", None, ""), ("here_c", True, ""), ("here_d", True, ""),
        ("here_e", False, "body"), ("there_e", False, "orelse"), ("here_f", True, ""), ("here_g", None, ""),
        ("here_h", True, ""), ("there_h", None, ""), ("here_i", False, "body"), ("there_i", False, "orelse"),
        ("here_j", False, "body"), ("here_k", None, ""), ("here_l", None, ""), ("here_m", None, ""),
        ("here_n", None, ""),
    ],
)  # fmt: skip
def test_places_that_run_on_some_ranks(name: str, early: bool | None, arm: str) -> None:
    scene = scene_of(BRANCHES)
    found = scene.rank_branch(scene.calls[name][0])
    assert (found.early if found else None) is early
    assert (found.arm if found else "") == arm
