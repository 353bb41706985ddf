"""How a file names torch's functions, and how another name is written there."""

from __future__ import annotations

import ast

import pytest

from torchstone.core.fix import Safety, apply_edits
from torchstone.lint.knowledge.api_use import call_fix, guarded, written
from torchstone.lint.knowledge.torch_api import DEPRECATED, REMOVED
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene_of(text: str) -> Scene:
    tree = parse(Source("sample.py", text))
    assert isinstance(tree, ast.Module)
    return Project().scene(Source("sample.py", text), tree)


@pytest.mark.parametrize(
    ("imports", "func", "name", "expected"),
    [
        ("import torch", "torch.qr", "torch.linalg.qr", "torch.linalg.qr"),
        ("import torch as t", "t.qr", "torch.linalg.qr", "t.linalg.qr"),
        ("from torch import nn", "nn.NLLLoss2d", "torch.nn.NLLLoss", "nn.NLLLoss"),
        ("import functorch, torch", "functorch.vmap", "torch.func.vmap", "torch.func.vmap"),
        ("import functorch", "functorch.vmap", "torch.func.vmap", ""),
        ("from torch import qr", "qr", "torch.linalg.qr", ""),
    ],
)
def test_names_are_written_with_what_the_file_imports(
    imports: str, func: str, name: str, expected: str
) -> None:
    scene = scene_of(f"{imports}\n{func}(x)\n")
    (call,) = scene.all(ast.Call)
    assert written(scene, call.func, name) == expected


@pytest.mark.parametrize(
    ("before", "after", "safe"),
    [
        ("torch.range(0, 6, 2, dtype=d)", "torch.arange(0, 7, 2, dtype=d)", True),
        ("torch.range(0, -5, -1, dtype=d)", "torch.arange(0, -6, -1, dtype=d)", True),
        (
            "torch.range(start=0, end=n - 1, dtype=d)",
            "torch.arange(start=0, end=n, dtype=d)",
            False,
        ),
        ("torch.range(0, 1, 0.5)", "", False),
        ("torch.norm(x, 2, 1)", "torch.linalg.vector_norm(x, 2, 1)", True),
        ("torch.norm(x, p='nuc')", "", False),
        ("torch.norm(x, order)", "", False),
        ("torch.qr(a, flag)", "", False),
        ("torch.chain_matmul(*ms)", "torch.linalg.multi_dot([*ms])", False),
        (
            "torch.matrix_rank(a, symmetric=True)",
            "torch.linalg.matrix_rank(a, hermitian=True)",
            False,
        ),
        ("torch.symeig(a)", "", False),
        ("torch.solve(b, a)[0]", "torch.linalg.solve(a, b)", False),
        ("torch.lu(a, get_infos=True)", "", False),
    ],
)
def test_calls_are_rewritten(before: str, after: str, safe: bool) -> None:
    scene = scene_of(f"import torch\n{before}\n")
    call = min(scene.all(ast.Call), key=lambda item: item.lineno)
    symbol = (DEPRECATED | REMOVED)[scene.qualified(call.func)]
    fix = call_fix(scene, call, symbol)
    if not after:
        assert fix is None
        return
    assert fix is not None
    assert apply_edits(scene.source.text, fix.edits) == f"import torch\n{after}\n"
    assert (fix.safety is Safety.SAFE) is safe


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("try:\n    f(x)\nexcept AttributeError:\n    pass\n", True),
        ("if hasattr(torch, 'f'):\n    f(x)\n", True),
        ("if TORCH_VERSION < (2, 0):\n    f(x)\n", True),
        ("if flag:\n    f(x)\n", False),
        ("f(x)\n", False),
    ],
)
def test_guards(source: str, expected: bool) -> None:
    scene = scene_of(source)
    (call,) = scene.calls["f"]
    assert guarded(scene, call) is expected
