"""Private names of torch are imported in `observe/compat` and nowhere else."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchstone.observe.compat import backends
from torchstone.observe.compat.messages import is_about_devices
from torchstone.observe.compat.versions import TorchTooOldError

SOURCE = Path(__file__).parents[2] / "src" / "torchstone"
COMPAT = SOURCE / "observe" / "compat"
ALLOWED = {
    # puts a small module in the place of the compiler, and takes it away again
    "conductor/probes/harvest/session.py": "torch._dynamo",
    # loads it before a run; nothing of it is named
    "cost/counting/engine.py": "torch._dynamo",
}


def private_names(tree: ast.Module) -> Iterator[str]:
    """Dotted names of torch with a part that begins with one underscore, as far as imports tell."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "torch":
                    yield from _if_private(alias.name)
                    known[alias.asname or "torch"] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield from _if_private(full)
                known[alias.asname or alias.name] = full
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            parts = ast.unparse(node).split(".")
            if parts[0] in known:
                yield from _if_private(".".join((known[parts[0]], *parts[1:])))


def _if_private(name: str) -> Iterator[str]:
    if any(part.startswith("_") and not part.startswith("__") for part in name.split(".")):
        yield name


def test_private_names_stand_in_compat_only() -> None:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        # a counter names the operators that it counts
        if path.is_relative_to(COMPAT) or name.startswith("cost/counters/"):
            continue
        text = path.read_text("utf-8")
        if ("torch" in text and "._" in text) or "import _" in text:
            allowed = ALLOWED.get(name, "nothing")
            names = {one for one in private_names(ast.parse(text)) if not one.startswith(allowed)}
            if names:
                found[name] = sorted(names)
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "from torch.utils._pytree import tree_map",
        "from torch.overrides import _pop_mode",
        "import torch\ntorch._C._set_grad_enabled(True)",
        "import torch.nn as nn\nnn.modules.batchnorm._BatchNorm",
    ],
)
def test_the_search_sees_each_way_to_a_private_name(line: str) -> None:
    assert list(private_names(ast.parse(line)))


def test_every_name_of_compat_is_there_with_this_torch() -> None:
    for path in sorted(COMPAT.glob("[a-z]*.py")):
        module = importlib.import_module(f"torchstone.observe.compat.{path.stem}")
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{path.stem}.{name}"


def test_sentences_of_old_and_new_torch_are_recognised_without_loading_it() -> None:
    assert is_about_devices("Expected all tensors to be on the same device, but got mat1 on cpu")
    assert is_about_devices(
        "Unhandled FakeTensor Device Propagation for aten.mm.default, "
        "found two different devices cpu, lazy:0"
    )
    assert not is_about_devices("mat1 and mat2 shapes cannot be multiplied (2x9 and 10x4)")
    line = "import sys, torchstone.observe.compat.messages; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], check=False).returncode == 0


def test_a_python_backend_that_torch_does_not_have_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backends, "_set_up", None)
    with pytest.raises(TorchTooOldError, match=r"torch 2\.10 or newer"):
        backends.register_python_backend("mine")
