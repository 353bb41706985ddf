"""The questions rules put to a file."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.sources.discover import File
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene_of(text: str, name: str = "sample.py", others: dict[str, str] | None = None) -> Scene:
    """A scene in a project of in-memory files."""
    texts = {name: text, **(others or {})}
    files = [File(Path("/nowhere") / key, key, value.encode()) for key, value in texts.items()]
    project = Project(files)
    tree = parse(Source(name, text))
    assert isinstance(tree, ast.Module), tree
    return project.scene(Source(name, text), tree)


def call(scene: Scene, name: str) -> ast.Call:
    (found,) = scene.calls[name]
    return found


def settled(scene: Scene, ask: Callable[[], object]) -> object:
    """Ask twice: what was looked up stays the same."""
    first = ask()
    assert ask() == first
    return first


@pytest.mark.parametrize(
    ("line", "expression", "expected"),
    [
        ("import torch.nn.functional as F", "F.softmax(x)", "torch.nn.functional.softmax"),
        ("from torch import amp", "amp.autocast('cuda')", "torch.amp.autocast"),
        ("from torch.nn.functional import softmax as sm", "sm(x)", "torch.nn.functional.softmax"),
        ("import torch", "torch.nn.functional.softmax(x)", "torch.nn.functional.softmax"),
        ("import torch as t", "t.softmax(x)", "torch.softmax"),
        ("from torch import *", "softmax(x)", "torch.softmax"),
        ("from torch.nn.functional import *", "softmax(x)", "torch.nn.functional.softmax"),
        ("from torch import *\nsoftmax = print", "softmax(x)", ""),
        ("import numpy as np", "x.softmax()", ""),
        (
            "def f():\n    import torch.distributed as dist",
            "dist.barrier()",
            "torch.distributed.barrier",
        ),
    ],
)
def test_names_are_resolved(line: str, expression: str, expected: str) -> None:
    scene = scene_of(f"{line}\n{expression}\n")
    (found,) = [c for c in scene.all(ast.Call) if scene.text(c) == expression]
    assert scene.qualified(found.func) == expected


def test_names_are_resolved_through_re_exports_of_the_project() -> None:
    others = {
        "pkg/__init__.py": "from .compat import F, sm\n",
        "pkg/compat.py": "import torch.nn.functional as F\nfrom torch import softmax as sm\n",
    }
    scene = scene_of("from pkg import F, sm\nF.relu(1)\nsm(2)\n", "train.py", others)
    assert scene.qualified(call(scene, "relu").func) == "torch.nn.functional.relu"
    (found,) = [c for c in scene.all(ast.Call) if scene.text(c) == "sm(2)"]
    assert scene.qualified(found.func) == "torch.softmax"


def test_names_are_resolved_through_star_imports_of_the_project() -> None:
    others = {"helpers.py": "import torch.nn.functional as F\n"}
    scene = scene_of("from helpers import *\nF.relu(1)\n", "train.py", others)
    assert scene.qualified(call(scene, "relu").func) == "torch.nn.functional.relu"


def test_relative_imports_are_resolved() -> None:
    others = {"pkg/__init__.py": "", "pkg/ops.py": "from torch.nn.functional import relu as act\n"}
    scene = scene_of("from .ops import act\nact(1)\n", "pkg/model.py", others)
    (found,) = scene.all(ast.Call)
    assert scene.qualified(found.func) == "torch.nn.functional.relu"


@pytest.mark.parametrize(
    ("opening", "device", "dtype", "certain"),
    [
        ("with torch.autocast('cuda'):", "cuda", "float16", True),
        ("with torch.autocast('cuda', dtype=torch.bfloat16):", "cuda", "bfloat16", True),
        ("with torch.autocast(device_type='cpu'):", "cpu", "bfloat16", True),
        ("with torch.cuda.amp.autocast():", "cuda", "float16", True),
        ("with torch.cuda.amp.autocast(enabled=flag):", "cuda", "float16", False),
        ("with torch.amp.autocast(device):", "", "", True),
        (
            "ctx = nullcontext() if cpu else torch.autocast('cuda')\nwith ctx:",
            "cuda",
            "float16",
            False,
        ),
        ("with torch.no_grad(), torch.autocast('cuda'):", "cuda", "float16", True),
        ("with accelerator.autocast():", "", "", False),
    ],
)
def test_autocast_regions(opening: str, device: str, dtype: str, certain: bool) -> None:
    scene = scene_of(
        f"import torch\nfrom contextlib import nullcontext\n{opening}\n    target(1)\n"
    )
    autocast = scene.region(call(scene, "target")).autocast
    assert autocast is not None
    assert (autocast.device, autocast.dtype, autocast.certain) == (device, dtype, certain)


def test_a_disabled_autocast_is_no_autocast() -> None:
    scene = scene_of(
        "import torch\nwith torch.autocast('cuda'):\n    with torch.autocast('cuda', enabled=False):\n"
        "        target(1)\n"
    )
    region = scene.region(call(scene, "target"))
    assert region.autocast is None
    assert region.autocast_off


def test_decorators_open_regions() -> None:
    scene = scene_of(
        "import torch\n@torch.no_grad()\n@torch.autocast('cuda')\ndef f():\n    target(1)\n"
    )
    region = scene.lexical_region(call(scene, "target"))
    assert region.no_grad
    assert region.autocast is not None


@pytest.mark.parametrize(
    ("opening", "without_grad"),
    [
        ("with torch.no_grad():", True),
        ("with torch.inference_mode():", True),
        ("with torch.inference_mode(mode=True):", True),
        ("with torch.inference_mode(False):", False),
        ("with torch.inference_mode(mode=False):", False),
        ("with torch.no_grad():\n  with torch.inference_mode(mode=False):", False),
        ("with torch.set_grad_enabled(False):", True),
        ("with torch.set_grad_enabled(train):", False),
        ("with torch.no_grad():\n  with torch.enable_grad():", False),
        ("if True:", False),
    ],
)
def test_grad_regions(opening: str, without_grad: bool) -> None:
    scene = scene_of(f"import torch\n{opening}\n    target(1)\n")
    assert scene.region(call(scene, "target")).without_grad is without_grad


def test_a_function_only_called_inside_autocast_is_inside() -> None:
    text = (
        "import torch\ndef loss(x):\n    return target(x)\n"
        "def step(x):\n    with torch.autocast('cuda'):\n        return loss(x)\n"
    )
    scene = scene_of(text)
    region = settled(scene, lambda: scene.region(call(scene, "target")))
    assert region.autocast is not None  # type: ignore[attr-defined]
    assert region.via == "loss"  # type: ignore[attr-defined]


def test_one_call_outside_is_enough_to_know_nothing() -> None:
    text = (
        "import torch\ndef loss(x):\n    return target(x)\n"
        "def step(x):\n    with torch.autocast('cuda'):\n        loss(x)\n    loss(x)\n"
    )
    scene = scene_of(text)
    region = settled(scene, lambda: scene.region(call(scene, "target")))
    assert region.autocast is None  # type: ignore[attr-defined]


def test_callers_in_other_files_and_two_levels_up_count() -> None:
    others = {
        "train.py": "import torch\nfrom middle import outer\nwith torch.autocast('cuda'):\n    outer(1)\n",
        "middle.py": "from sample import inner\ndef outer(x):\n    return inner(x)\n",
    }
    scene = scene_of("def inner(x):\n    return target(x)\n", "sample.py", others)
    region = settled(scene, lambda: scene.region(call(scene, "target")))
    assert region.autocast is not None  # type: ignore[attr-defined]


def test_forward_is_called_through_the_instance() -> None:
    text = (
        "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        return target(x)\nnet = Net()\nwith torch.autocast('cuda'):\n    net(1)\n"
    )
    scene = scene_of(text)
    region = settled(scene, lambda: scene.region(call(scene, "target")))
    assert region.autocast is not None  # type: ignore[attr-defined]


STEP = """
import torch
for epoch in range(3):
    for x in data:
        loss = model(x)
        inside(loss)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            gated(loss)
    after(loss)
"""


@pytest.mark.parametrize(
    ("name", "expected"), [("inside", True), ("gated", False), ("after", False)]
)
def test_step_loops(name: str, expected: bool) -> None:
    scene = scene_of(STEP)
    assert scene.in_step_loop(call(scene, name)) is expected


def test_a_step_function_counts_as_a_loop() -> None:
    scene = scene_of(
        "def train_step(x):\n    loss = model(x)\n    inside(loss)\n    loss.backward()\n    optimizer.step()\n"
    )
    assert scene.in_step_loop(call(scene, "inside"))


@pytest.mark.parametrize(
    ("text", "dependent"),
    [
        ("if rank == 0:\n    target(1)\n", True),
        ("if dist.get_rank() == 0:\n    target(1)\n", True),
        ("if is_main_process():\n    target(1)\n", True),
        ("if accelerator.is_main_process:\n    target(1)\n", True),
        ("if not self.is_world_process_zero:\n    pass\nelse:\n    target(1)\n", True),
        ("if int(os.environ['RANK']) == 0:\n    target(1)\n", True),
        ("master = rank == 0\nif master:\n    target(1)\n", True),
        ("def f(rank):\n    if rank != 0:\n        return\n    target(1)\n", True),
        ("def f(rank):\n    if rank == 0:\n        print(1)\n    target(1)\n", False),
        ("if rank is None:\n    target(1)\n", False),
        ("if world_size > 1:\n    target(1)\n", False),
        ("if local_rank == -1:\n    target(1)\n", False),
        ("def chief():\n    return dist.get_rank() == 0\nif chief():\n    target(1)\n", True),
    ],
)
def test_rank_branches(text: str, dependent: bool) -> None:
    scene = scene_of("import os\nimport torch.distributed as dist\n" + text)
    assert (scene.rank_branch(call(scene, "target")) is not None) is dependent


def test_rank_helpers_of_other_files_are_understood() -> None:
    others = {
        "utils.py": "import torch.distributed as dist\ndef boss():\n    return dist.get_rank() == 0\n"
    }
    scene = scene_of("from utils import boss\nif boss():\n    target(1)\n", "train.py", others)
    assert scene.rank_branch(call(scene, "target")) is not None


def test_forward_and_getitem() -> None:
    text = (
        "from torch import nn\nfrom torch.utils.data import Dataset\n"
        "class Base(nn.Module):\n    pass\n"
        "class Net(Base):\n    def forward(self, x):\n        one(x)\n    def other(self):\n        two(1)\n"
        "class Data(Dataset):\n    def __getitem__(self, i):\n        three(i)\n"
    )
    scene = scene_of(text)
    assert scene.forward_of(call(scene, "one")) is not None
    assert scene.forward_of(call(scene, "two")) is None
    assert scene.getitem_of(call(scene, "three")) is not None


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("x = y.half()\ntarget(x)", "float16"),
        ("x = y.to(torch.bfloat16)\ntarget(x)", "bfloat16"),
        ("x = torch.zeros(3, dtype=torch.half)\ntarget(x.view(1).t())", "float16"),
        ("x = y.half()\nx = x.float()\ntarget(x)", "float32"),
        ("x = y.half()\nx = f(x)\ntarget(x)", ""),
        ("x = y.half() * 2\ntarget(x)", "float16"),
        ("d = torch.float16\nx = y.to(dtype=d)\ntarget(x)", "float16"),
        ("x = y.to(device)\ntarget(x)", ""),
    ],
)
def test_dtypes(text: str, dtype: str) -> None:
    scene = scene_of("import torch\n" + text + "\n")
    assert scene.dtype(call(scene, "target").args[0]) == dtype


def test_columns_count_characters_where_ast_counts_bytes() -> None:
    scene = scene_of("s = '中文'; target(1)\n")
    assert scene.text(call(scene, "target")) == "target(1)"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("f(a)", "f(a, k=1)"),
        ("f()", "f(k=1)"),
        ("f(a,)", "f(a, k=1,)"),
        ("f((a))", "f((a), k=1)"),
        ("f(\n    a,\n    b=(2),  # why\n)", "f(\n    a,\n    b=(2), k=1,  # why\n)"),
    ],
)
def test_add_keyword_keeps_the_formatting(source: str, expected: str) -> None:
    from torchstone.core.fix import apply_edits

    scene = scene_of(source + "\n")
    (found,) = scene.all(ast.Call)
    assert apply_edits(source + "\n", [scene.add_keyword(found, "k=1")]) == expected + "\n"


def test_modules_that_import_each_other_are_resolved() -> None:
    others = {
        "pkg/__init__.py": "",
        "pkg/a.py": "from pkg import b\nmake = b.make\n",
        "pkg/b.py": "from pkg import a\nfrom torch import zeros\nmake = zeros\nagain = a.make\n",
    }
    scene = scene_of("from pkg.a import make\nmake(3)\n", others=others)
    assert scene.qualified(call(scene, "make").func) == "torch.zeros"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("src/test_model.py", "", True),
        ("src/model_test.py", "", True),
        ("conftest.py", "", True),
        ("pkg/testing_utils.py", "", True),
        ("net.py", "import pytest\n", True),
        ("net.py", "from unittest import TestCase\n", True),
        ("tests/net.py", "import torch\n", False),
        ("latest/model.py", "", False),
        ("src/testbed.py", "", False),
    ],
)
def test_tests_are_known_by_their_own_name(path: str, text: str, expected: bool) -> None:
    assert scene_of(text, path).is_test is expected
