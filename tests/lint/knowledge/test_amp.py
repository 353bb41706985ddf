"""Scalers, regions, branches: what the precision rules know of a file."""

from __future__ import annotations

import ast

import pytest

from torchstone.lint.knowledge import amp
from torchstone.lint.knowledge.dtypes import complex_source, integer_dtype
from torchstone.lint.values.half_operands import half_here
from torchstone.sources.project import Project
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene_of(text: str, path: str = "sample.py") -> Scene:
    return Project().scene(Source(path, text), ast.parse(text))


def first(scene: Scene, name: str) -> ast.Call:
    return scene.calls[name][0]


@pytest.mark.parametrize(
    ("made", "yes"),
    [
        ("torch.amp.GradScaler('cuda')", True),
        ("GradScaler()", True),
        ("ShardedGradScaler()", True),
        ("StandardScaler()", False),
    ],
)
def test_a_scaler_is_known_by_its_making(made: str, yes: bool) -> None:
    scene = scene_of(f"import torch\nscaler = {made}\nscaler.step(opt)\n")
    assert bool(amp.scaler_calls(scene, "step")) == yes


def test_a_scaler_that_is_handed_in_is_known_by_its_name() -> None:
    scene = scene_of(
        "def f(grad_scaler, scheduler):\n    grad_scaler.step(o)\n    scheduler.step()\n"
    )
    assert [call.lineno for call in amp.scaler_calls(scene, "step")] == [2]


def test_scaled_follows_a_name() -> None:
    text = "def f(scaler, loss):\n    big = scaler.scale(loss)\n    big.backward()\n    loss.backward()\n"
    scene = scene_of(text)
    big, plain = scene.calls["backward"]
    assert amp.scaled(scene, big) is not None
    assert amp.scaled(scene, plain) is None


def test_arms_of_one_if_exclude_each_other() -> None:
    text = "if a:\n    one()\nelif b:\n    two()\nelse:\n    three()\nfour()\n"
    scene = scene_of(text)
    one, two, three, four = (first(scene, name) for name in ("one", "two", "three", "four"))
    assert amp.exclusive(scene, one, two)
    assert amp.exclusive(scene, two, three)
    assert amp.exclusive(scene, three, one)
    assert not amp.exclusive(scene, one, four)
    assert not amp.exclusive(scene, one, one)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x @ w", ("float16", True)),
        ("torch.sigmoid(x @ w) * 2", ("float16", True)),
        ("(x @ w) / math.sqrt(8)", ("float16", True)),
        ("(x @ w).float()", ("", False)),
        ("(x @ w) * gain", ("", False)),
        ("torch.exp(x @ w)", ("", False)),
        ("x", ("", False)),
        ("x.bfloat16()", ("bfloat16", True)),
    ],
)
def test_half_inside_autocast(expression: str, expected: tuple[str, bool]) -> None:
    text = f"import math\nimport torch\nwith torch.autocast('cuda'):\n    use({expression})\n"
    scene = scene_of(text)
    assert half_here(scene, first(scene, "use").args[0]) == expected


def test_the_region_may_be_switched_off() -> None:
    text = "import torch\nwith torch.autocast('cuda', enabled=flag):\n    use(x @ w)\n"
    scene = scene_of(text)
    assert half_here(scene, first(scene, "use").args[0]) == ("float16", False)


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("torch.tensor([1, 2])", "int64"),
        ("torch.tensor([1, 2.0])", ""),
        ("torch.tensor([True])", "bool"),
        ("torch.tensor([n])", ""),
        ("torch.arange(8)", "int64"),
        ("torch.arange(0, 1, 0.1)", ""),
        ("torch.arange(n)", ""),
        ("x.argmax(dim=1)", "int64"),
        ("x.argmax(1)", ""),
        ("x.argmax(dim=1) == y", "bool"),
        ("x == y", ""),
        ("x.long().view(-1) + 1", "int64"),
        ("x.long() + 0.5", ""),
        ("x.long() / 2", ""),
        ("x.long().float()", ""),
        ("np.argmax(x, axis=1)", ""),
    ],
)
def test_integer_tensors(expression: str, dtype: str) -> None:
    scene = scene_of(f"import numpy as np\nimport torch\nuse({expression})\n")
    assert integer_dtype(scene, first(scene, "use").args[0]) == dtype


@pytest.mark.parametrize(
    ("expression", "source"),
    [
        ("torch.fft.rfft(x)", "torch.fft.rfft"),
        ("torch.fft.irfft(x)", ""),
        ("torch.fft.fft(x).abs()", ""),
        ("torch.fft.fft(x).reshape(-1)", "torch.fft.fft"),
        ("torch.stft(x, 8, return_complex=True)", "torch.stft"),
        ("torch.stft(x, 8, return_complex=False)", ""),
        ("x.to(torch.complex64)", "complex64"),
    ],
)
def test_complex_tensors(expression: str, source: str) -> None:
    scene = scene_of(f"import torch\nuse({expression})\n")
    assert complex_source(scene, first(scene, "use").args[0]) == source
