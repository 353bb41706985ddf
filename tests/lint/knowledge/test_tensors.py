"""What counts as a tensor on the device."""

from __future__ import annotations

import ast

import pytest

from torchstone.lint.knowledge import tensors
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene_of(text: str, path: str = "sample.py") -> Scene:
    tree = parse(Source(path, text))
    assert isinstance(tree, ast.Module)
    return Project().scene(Source(path, text), tree)


def asked(setup: str, expression: str) -> bool:
    """Whether the last expression of a file is held to be a tensor."""
    scene = scene_of(f"import numpy as np\nimport torch\n{setup}\n{expression}\n")
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    return tensors.is_tensor(scene, last.value)


@pytest.mark.parametrize(
    ("setup", "expression"),
    [
        ("loss = criterion(model(x), y)", "loss"),
        ("loss = criterion(model(x), y)", "loss.detach().mean() > 5"),
        ("loss = criterion(model(x), y)", "torch.isnan(loss).any()"),
        ("out = model(x)", "out.argmax(-1)"),
        ("x = x.to(device)", "x[0]"),
        ("x = batch['x'].cuda()", "x.sum()"),
        ("loss, logits = model(x)", "loss"),
        ("norm = torch.nn.utils.clip_grad_norm_(p, 1.0)", "norm"),
        ("out = model(x)", "torch.cat([out, y])"),
        ("loss = model(x).loss\nloss.backward()", "loss / 2"),
    ],
)
def test_tensors(setup: str, expression: str) -> None:
    assert asked(setup, expression)


@pytest.mark.parametrize(
    ("setup", "expression"),
    [
        ("", "x"),
        ("x = np.zeros(3)", "x.sum()"),
        ("x = torch.tensor([1.0])", "x"),
        ("loss = criterion(model(x), y)", "loss is None"),
        ("loss = criterion(model(x), y)", "loss.shape"),
        ("loss = criterion(model(x), y).item()", "loss > 5"),
        ("x = y.to('cpu')", "x"),
        ("device = torch.device('cpu')\nx = y.to(device)", "x"),
        ("for x in loader:\n    pass", "x"),
    ],
)
def test_no_tensors(setup: str, expression: str) -> None:
    assert not asked(setup, expression)


def test_what_backward_runs_on() -> None:
    scene = scene_of(
        "import torch\n"
        "loss.backward()\n"
        "scaler.scale(a + self.b).backward()\n"
        "accelerator.backward(c.mean())\n"
    )
    assert tensors.backward_names(scene) == {"loss", "a", "self.b", "c"}
