"""Which places can run in one pass."""

from __future__ import annotations

import ast

import pytest

from torchstone.lint.facts.paths import contradict, special_cases
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene_of(text: str) -> Scene:
    source = Source("sample.py", text)
    tree = parse(source)
    assert isinstance(tree, ast.Module)
    return Project().scene(source, tree)


def call(scene: Scene, name: str) -> ast.Call:
    return next(c for c in scene.all(ast.Call) if scene.last_name(c.func) == name)


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("amp", "not amp", True),
        ("scaler is None", "scaler is not None", True),
        ("scaler is None", "scaler", True),
        ("p == 0", "p > 0", True),
        ("mode == 'a'", "mode != 'a'", True),
        ("amp and fast", "not amp", True),
        ("amp", "amp", False),
        ("amp", "fast", False),
        ("amp or fast", "not amp", False),
        ("ready()", "not ready()", False),
    ],
)
def test_conditions_on_the_same_flag(first: str, second: str, apart: bool) -> None:
    text = f"def run(amp, fast, scaler, p, mode):\n    if {first}:\n        one()\n    if {second}:\n        two()\n"
    scene = scene_of(text)
    assert contradict(scene, call(scene, "one"), call(scene, "two")) is apart


def test_an_early_return_counts() -> None:
    scene = scene_of(
        "def run(amp):\n    if amp:\n        one()\n    if amp:\n        return\n    two()\n"
    )
    assert contradict(scene, call(scene, "one"), call(scene, "two"))


def test_a_flag_that_changes_proves_nothing() -> None:
    text = "def run(data):\n    for x in data:\n        done = x > 1\n        if done:\n            one()\n        if not done:\n            two()\n"
    scene = scene_of(text)
    assert not contradict(scene, call(scene, "one"), call(scene, "two"))


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("import torch\ndef f():\n    if torch.__version__ > '1':\n        one()\n", "version"),
        (
            "def f():\n    try:\n        zero()\n    except ImportError:\n        one()\n",
            "fallback",
        ),
        ("def f(args):\n    if args.deepspeed:\n        one()\n", "engine"),
        ("def f(scaler):\n    if scaler is None:\n        one()\n", "no-scaler"),
        ("def f(use_cuda):\n    if not use_cuda:\n        one()\n", "no-device"),
    ],
)
def test_special_cases(text: str, case: str) -> None:
    scene = scene_of(text)
    assert case in special_cases(scene, call(scene, "one"))
