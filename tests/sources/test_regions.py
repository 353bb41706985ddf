"""Autocast and gradients at a place: what opens a region, and what only looks like it."""

from __future__ import annotations

import ast

import pytest

from tests.sources.test_scene import scene_of
from torchstone.sources.regions import Region, autocast_call
from torchstone.sources.scene import Scene

HEAD = """\
import contextlib, functools
import torch
from torch.amp import autocast
flag = cond()
half = functools.partial(torch.autocast, "cuda", dtype=torch.bfloat16)
amp = torch.autocast("cuda") if flag else contextlib.nullcontext()
twice = torch.autocast("cpu")
twice = other()
@contextlib.contextmanager
def casting():
    with torch.autocast("cuda"):
        yield
@contextlib.contextmanager
def mixed():
    if flag:
        with torch.autocast("cuda"):
            yield
    else:
        yield
@contextlib.contextmanager
def stopped():
    with torch.no_grad():
        yield
def made():
    return torch.autocast("cpu")
def made_or_not():
    if flag:
        return torch.autocast("cpu")
    return contextlib.nullcontext()
def off():
    return torch.autocast("cuda", enabled=False)
def without():
    return torch.no_grad()
def either():
    if flag:
        return torch.no_grad()
    return torch.enable_grad()
def decorated(function):
    def inner(*args):
        with torch.no_grad():
            return function(*args)
    return inner
def inferring(function):
    def inner(*args):
        with torch.inference_mode():
            return function(*args)
    return inner
def careless(function):
    def inner(*args):
        with torch.no_grad():
            pass
        return function(*args)
    return inner
"""


def at(opening: str) -> Region:
    scene = scene_of(f"{HEAD}def f(self):\n    {opening}:\n        here()\n")
    [call] = scene.calls["here"]
    return scene.lexical_region(call)


@pytest.mark.parametrize(("opening", "device", "dtype", "certain"), [
    ("with torch.autocast('cuda')", "cuda", "float16", True),
    ("with torch.autocast('cuda:1')", "cuda", "float16", True),
    ("with torch.autocast('cpu')", "cpu", "bfloat16", True),
    ("with torch.autocast(device_type='mps')", "mps", "float16", True),
    ("with torch.autocast(kind)", "", "", True),
    ("with torch.autocast('cuda', torch.bfloat16)", "cuda", "bfloat16", True),
    ("with autocast('cuda', dtype=torch.float16)", "cuda", "float16", True),
    ("with torch.autocast('cuda', dtype=kind)", "cuda", "", True),
    ("with torch.autocast('cuda', enabled=flag)", "cuda", "float16", False),
    ("with torch.autocast('cuda', enabled=True)", "cuda", "float16", True),
    ("with torch.cuda.amp.autocast()", "cuda", "float16", True),
    ("with torch.cuda.amp.autocast(True)", "cuda", "float16", True),
    ("with torch.cuda.amp.autocast(flag)", "cuda", "float16", False),
    ("with torch.cpu.amp.autocast()", "cpu", "bfloat16", True),
    ("with accelerator.autocast()", "", "", False),
    ("with half()", "cuda", "bfloat16", True),
    ("with amp", "cuda", "float16", False),
    ("with twice", "cpu", "bfloat16", False),
    ("with casting()", "cuda", "float16", True),
    ("with made()", "cpu", "bfloat16", True),
    ("with made_or_not()", "cpu", "bfloat16", False),
    ("with a(), torch.autocast('cuda'), b()", "cuda", "float16", True),
    ("async with torch.autocast('cuda')", "cuda", "float16", True),
])  # fmt: skip
def test_what_opens_autocast(opening: str, device: str, dtype: str, certain: bool) -> None:
    found = at(opening).autocast
    assert found is not None
    assert (found.device, found.dtype, found.certain) == (device, dtype, certain)


@pytest.mark.parametrize(("opening", "off"), [
    ("with torch.autocast('cuda', enabled=False)", True), ("with torch.cuda.amp.autocast(False)", True),
    ("with off()", True), ("with mixed()", False), ("with nothing()", False), ("with x", False),
    ("with functools.partial()", False), ("with stopped()", False), ("if torch.autocast('cuda')", False),
])  # fmt: skip
def test_what_opens_none(opening: str, off: bool) -> None:
    found = at(opening)
    assert found.autocast is None
    assert found.autocast_off is off


def test_the_innermost_region_counts() -> None:
    scene = scene_of(
        f"{HEAD}with torch.autocast('cuda'):\n    with torch.autocast('cpu'):\n        inner()\n"
        "    with torch.autocast('cuda', enabled=False):\n        off()\n"
        "with torch.no_grad():\n    with torch.enable_grad():\n        on()\n"
    )
    regions = {name: scene.lexical_region(scene.calls[name][-1]) for name in ("inner", "off", "on")}
    assert regions["inner"].autocast is not None
    assert regions["inner"].autocast.device == "cpu"
    assert (regions["off"].autocast, regions["off"].autocast_off) == (None, True)
    assert not regions["on"].without_grad


@pytest.mark.parametrize(("opening", "no_grad", "inference"), [
    ("with torch.no_grad()", True, False), ("with torch.autograd.no_grad()", True, False),
    ("with torch.inference_mode()", False, True), ("with torch.inference_mode(True)", False, True),
    ("with torch.inference_mode(mode=False)", False, False), ("with torch.inference_mode(False)", False, False),
    ("with torch.enable_grad()", False, False), ("with torch.set_grad_enabled(False)", True, False),
    ("with torch.set_grad_enabled(mode=False)", True, False), ("with torch.set_grad_enabled(True)", False, False),
    ("with torch.set_grad_enabled(flag)", False, False), ("with stopped()", True, False),
    ("with without()", True, False), ("with either()", False, False), ("with nothing()", False, False),
])  # fmt: skip
def test_what_switches_gradients_off(opening: str, no_grad: bool, inference: bool) -> None:
    found = at(opening)
    assert (found.no_grad, found.inference_mode) == (no_grad, inference)
    assert found.without_grad is (no_grad or inference)


@pytest.mark.parametrize(("decorator", "no_grad", "inference"), [
    ("@torch.no_grad()", True, False), ("@torch.no_grad", True, False), ("@torch.inference_mode()", False, True),
    ("@decorated", True, False), ("@inferring", False, True), ("@careless", False, False), ("@nothing", False, False),
    ("@torch.enable_grad()", False, False),
])  # fmt: skip
def test_decorators(decorator: str, no_grad: bool, inference: bool) -> None:
    scene = scene_of(f"{HEAD}{decorator}\ndef f():\n    here()\n")
    found = scene.lexical_region(scene.calls["here"][0])
    assert (found.no_grad, found.inference_mode) == (no_grad, inference)


@pytest.mark.parametrize(("body", "off"), [
    ("torch.set_grad_enabled(False)\n    here()", True), ("here()\n    torch.set_grad_enabled(False)", False),
    ("torch.set_grad_enabled(False)\n    torch.set_grad_enabled(True)\n    here()", False),
    ("x = torch.set_grad_enabled(False)\n    here()", False),
    ("with torch.enable_grad():\n        torch.set_grad_enabled(False)\n        here()", False),
])  # fmt: skip
def test_the_switch_itself(body: str, off: bool) -> None:
    scene = scene_of(f"{HEAD}def f():\n    {body}\n")
    assert scene.lexical_region(scene.calls["here"][0]).no_grad is off


def region(scene: Scene, name: str) -> Region:
    [call] = scene.calls[name]
    return scene.region(call)


def test_what_callers_open() -> None:
    scene = scene_of(
        f"{HEAD}def both():\n    here()\ndef one():\n    there()\ndef none():\n    nowhere()\n"
        "def deep():\n    down()\ndef shallow():\n    deep()\n"
        "with torch.autocast('cuda'), torch.no_grad():\n    both()\n    both()\n    one()\n    shallow()\none()\n"
    )
    found = region(scene, "here")
    assert found.autocast is not None
    assert (found.autocast.device, found.no_grad, found.via) == ("cuda", True, "both")
    assert region(scene, "there").autocast is None
    assert not region(scene, "there").without_grad
    assert region(scene, "nowhere") == Region()
    assert region(scene, "down").no_grad
    assert region(scene, "down").via == "deep"


@pytest.mark.parametrize(("calls", "device"), [
    ("with torch.autocast('cuda'):\n    f()\nwith torch.autocast('cpu'):\n    f()\n", ""),
    ("with torch.autocast('cuda'):\n    f()\nwith torch.autocast('cuda', dtype=torch.bfloat16):\n    f()\n", ""),
    ("with torch.autocast('cuda'):\n    f()\n    g = f\n", None),
    ("with torch.autocast('cuda'):\n    f()\nx.f()\n", "cuda"),
    ("", None),
])  # fmt: skip
def test_callers_that_differ(calls: str, device: str | None) -> None:
    scene = scene_of(f"{HEAD}def f():\n    here()\n{calls}")
    found = region(scene, "here").autocast
    assert (found.device if found else None) == device


def test_methods_and_modules_of_other_files() -> None:
    others = {"use.py": (
        "import torch, sample\nfrom sample import Net, g\nnet = Net()\nwith torch.no_grad():\n    net(1)\n    net.go()\n"
        "    sample.k()\n    g()\n"
    )}  # fmt: skip
    scene = scene_of(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        a()\n    def go(self):\n        b()\n"
        "def k():\n    c()\ndef g():\n    d()\n",
        others=others,
    )
    assert [region(scene, name).no_grad for name in "abcd"] == [True] * 4


@pytest.mark.parametrize(("text", "opens"), [
    ("torch.autocast('cuda')", True), ("torch.autocast('cuda', enabled=False)", False), ("f()", False),
])  # fmt: skip
def test_calls_that_open_a_region(text: str, opens: bool) -> None:
    scene = scene_of(f"import torch\n{text}\n")
    [call] = scene.all(ast.Call)
    assert (autocast_call(scene, call) is not None) is opens


@pytest.mark.parametrize(("calls", "known"), [(60, True), (61, False)])
def test_a_function_that_is_called_in_too_many_places_is_not_known(calls: int, known: bool) -> None:
    inside = "    f()\n" * calls
    scene = scene_of(f"{HEAD}def f():\n    here()\nwith torch.no_grad():\n{inside}")
    assert region(scene, "here").no_grad is known


@pytest.mark.parametrize(("files", "known"), [(11, True), (12, False)])
def test_a_function_that_is_called_in_too_many_files_is_not_known(files: int, known: bool) -> None:
    others = {
        f"use{number}.py": "import torch\nfrom sample import f\nwith torch.no_grad():\n    f()\n"
        for number in range(files)
    }
    scene = scene_of("import torch\ndef f():\n    here()\n", others=others)
    assert region(scene, "here").no_grad is known


@pytest.mark.parametrize(("depth", "known"), [(1, True), (2, True), (3, True), (4, False)])
def test_callers_are_followed_three_functions_up(depth: int, known: bool) -> None:
    rows = ["def f0():\n    here()"]
    rows += [f"def f{number}():\n    f{number - 1}()" for number in range(1, depth)]
    scene = scene_of(HEAD + "\n".join(rows) + f"\nwith torch.no_grad():\n    f{depth - 1}()\n")
    assert region(scene, "here").no_grad is known
