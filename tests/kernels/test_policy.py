"""The static policy refuses what reaches beyond computing, and nothing that a kernel needs."""

from __future__ import annotations

import pytest

from torchstone.kernels.candidate import Candidate, Implementation
from torchstone.kernels.policy.check import breaches

MODEL = """

class ModelNew(torch.nn.Module):
    def forward(self, x):
        {body}
"""
TRITON = """import torch
import triton
import triton.language as tl
{top}

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {line}
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, x.numel(), BLOCK=1024)
        return y
"""


def found(source: str, implementation: Implementation = "torch") -> list[str]:
    return [item.what.en for item in breaches(Candidate(source, implementation))]


@pytest.mark.parametrize(
    ("top", "body"),
    [
        ("import os", "return x"),
        ("import ctypes", "return x"),
        ("from importlib import import_module", "return x"),
        ("from torch import *", "return x"),
        ("from . import problem", "return x"),
        ("import torchstone", "return x"),
        ("import torch.utils.cpp_extension", "return x"),
        ("from torch.utils import cpp_extension", "return x"),
        ("", "return eval('x')"),
        ("", "return getattr(torch, 'relu')(x)"),
        ("", "return torch.load('answer')"),
        ("", "return torch.os.system('true')"),
        ("", "return x.__class__.__bases__"),
        ("", "return torch._C._nn.gelu(x)"),
        ("", "return (lambda: 0).__globals__"),
        ("", "torch.relu = abs; return x"),
        ("T = torch.Tensor\nT.relu = abs", "return x"),
        ("", "type(x).relu = abs; return x"),
        ("", "del torch.allclose; return x"),
        ("cache = {}", "global cache; return x"),
        ("from operator import attrgetter", "return attrgetter('f_back')(x)"),
        ("import operator", "return operator.attrgetter('f_back')(x)"),
        ("class Lazy(torch.Tensor): pass", "return Lazy(x)"),
        ("class Model: pass", "return x"),
        ("", "return Model()(x)"),
        ("", "return torch.compile(torch.relu)(x)"),
        ("", "return torch.ops.aten.relu(x)"),
        ("", "x.untyped_storage(); return x"),
        ("", "return x if torch.is_grad_enabled() else x.relu()"),
        ("from torch import is_inference_mode_enabled as asked", "return x if asked() else -x"),
        ("", "return x.relu() if x.requires_grad else x"),
        ("", "return x if x.is_leaf else x.relu()"),
        ("", "return x if x.is_inference() else x.relu()"),
        ("", "return x if torch.compiler.is_compiling() else x.relu()"),
        ("", "return x if torch.get_num_threads() == 1 else x.relu()"),
        ("seen = {}", "return seen.setdefault(id(x), x.relu())"),
        ("import numpy as np", "now = np.datetime64('now'); return x"),
        ("import numpy as np", "now = np.array(['now'], dtype='datetime64[us]'); return x"),
        ("", "return x if torch.rand(()) < 1e-3 else x.relu()"),
        ("import numpy as np", "return x if np.random.rand() < 1e-3 else x.relu()"),
        ("g = torch.Generator()", "return x"),
        ("def chance():\n    return torch.rand(())", "return x * chance()"),
        ("def unused():\n    import math as torch", "return torch.hub"),
        ("import math\ndef unused():\n    torch = math", "return torch.hub"),
        ("class Box:\n    import torch as inner", "return Box.inner.hub"),
        ("class Box:\n    if True:\n        inner = torch", "return Box.inner.hub"),
        (
            "if 1:\n  if 1:\n    if 1:\n      if 1:\n        a = torch\n      b = a\n    c = b\n  d = c\ne = d",
            "return e.hub",
        ),
        ("", "T = type(x); T.relu = abs; return x"),
        ("", "return type(ModelNew)('Box', (), {'__array_interface__': {}})()"),
        ("make = type", "return make('Box', (), {})()"),
        ("def change(kind):\n    kind.relu = abs", "change(torch.Tensor); return x"),
        ("kinds = [torch.Tensor]", "kinds[0].relu = abs; return x"),
        ("", "self.kind = torch.Tensor; self.kind.relu = abs; return x"),
        ("", "torch.nn.Parameter.mro()[1].relu = abs; return x"),
        ("from enum import Enum", "return Enum('E', {'A': 1, '__array_interface__': {}}).A"),
        ("from enum import Enum\nclass E(Enum): pass", "return E('F', {'A': 1}).A"),
    ],
)
def test_refused(top: str, body: str) -> None:
    assert found("import torch\n" + top + MODEL.format(body=body))


@pytest.mark.parametrize(
    ("top", "body"),
    [
        ("import math", "return x * math.sqrt(2)"),
        ("from torch import nn\nimport torch.nn.functional as F", "return F.relu(x)"),
        ("", "print('hello'); return x.to(torch.float32)"),
        ("", "self.calls = 1; return x"),
        ("from typing import Any", "y: Any = x; y[0] = 1; return y"),
        ("import numpy as np", "return torch.from_numpy(np.maximum(x.numpy(), 0))"),
        ("class Op(torch.autograd.Function):\n    pass", "return x.relu()"),
        ("import functools", "return functools.reduce(torch.add, [x, x])"),
        ("", "id = 3; return x.relu()"),
        ("", "x = x.clone().requires_grad_(False); return x"),
        ("", "x.requires_grad = False; return x"),
        (
            "from typing import NamedTuple\nclass Sizes(NamedTuple):\n    n: int",
            "return x * Sizes(2).n",
        ),
        ("from enum import Enum\nclass Way(Enum):\n    UP = 1", "return x * Way.UP.value"),
        ("", "return x if type(x) is torch.Tensor else x.relu()"),
        ("", "raise TypeError(f'got {type(x).__name__}')"),
        ("from typing import Tuple\nPair = Tuple[torch.Tensor, torch.Tensor]", "return x.relu()"),
        ("def f(x: torch.Tensor | None) -> list[torch.Tensor]:\n    return [x]", "return f(x)[0]"),
        ("", "return x.relu() if isinstance(x, (torch.Tensor, float)) else x"),
        ("", "act = torch.relu if x.ndim else torch.tanh; act = torch.relu; return act(x)"),
        ("import numpy as np", "with np.errstate(over='ignore'):\n            return x.relu()"),
        ("w = torch.randn(3)", "return x.relu()"),
        (
            "class Part(torch.nn.Module):\n    def __init__(self): self.w = self.made()\n    def made(self): return torch.randn(3)",
            "return x.relu()",
        ),
    ],
)
def test_allowed(top: str, body: str) -> None:
    assert found("import torch\n" + top + MODEL.format(body=body)) == []


@pytest.mark.parametrize(
    ("top", "line", "clean"),
    [
        ("", "at = at + 0", True),
        ("WIDTH = 128\nEPS: tl.constexpr = tl.constexpr(1e-5)", "at = at + WIDTH * 0", True),
        ("from triton.language import exp", "z = exp(at.to(tl.float32))", True),
        ("", "for i in range(3): at = at + 0", True),
        ("", "z = torch.relu(at)", False),
        ("box = {}", "box['y'].copy_(box['x'])", False),
        ("import numpy as np", "z = np.maximum(at, 0)", False),
        ("def helper(t): return t", "z = helper(at)", False),
    ],
)
def test_only_the_language_of_kernels_runs_inside_one(top: str, line: str, clean: bool) -> None:
    assert (found(TRITON.format(top=top, line=line), "triton") == []) is clean


def test_kernels_are_defined_and_launched() -> None:
    plain = "import torch" + MODEL.format(body="return x")
    for implementation in ("triton", "numba", "c"):
        assert found(plain, implementation)
    assert found(
        "import torch\nimport numba" + MODEL.format(body="return numba.njit(abs)(x)"), "numba"
    )
    assert found(
        TRITON.format(top="", line="at = at").replace("kernel[(1,)]", "(1, print)[1]"), "triton"
    )


def test_only_swft_is_imported_with_a_star() -> None:
    source = "from swft.core import *\nfrom swft.api import *\n\n\nclass ModelNew:\n    pass\n"
    assert found(source, "swft") == []
    assert found(source, "torch")
    for module in ("torch", "math", "swft.tools", "os"):
        assert found(source.replace("swft.api", module), "swft"), module


def test_a_try_may_hide_a_fallback() -> None:
    source = TRITON.format(top="", line="at = at")
    hidden = source.replace(
        "        kernel[", "        try: pass\n        finally: pass\n        kernel["
    )
    assert any("fallback" in what for what in found(hidden, "triton"))


def test_what_is_no_python_is_one_breach() -> None:
    assert found("def f(:") == ["does not parse as Python: invalid syntax"]
    assert len(found("(" * 5000)) == 1
    assert found("") == ["defines no class ModelNew"]
    assert found("ModelNew = 3") == ["ModelNew must be a class defined in this file"]


@pytest.mark.parametrize(
    ("top", "body"),
    [
        ("import functools", "return functools.singledispatch(lambda x: x)(x)"),
        ("from functools import singledispatch", "return x"),
        ("from functools import wraps", "wraps(abs, assigned=('relu',))(torch.Tensor); return x"),
        ("import operator", "return operator.setitem(x, 0, 1)"),
        ("import typing", "return typing.NamedTuple('T', [('x', 'print()')])"),
        ("import functools as tools\nf = tools.update_wrapper", "return x"),
        ("import dataclasses", "return dataclasses.sys"),
        ("", "return torch.nn.functional.torch.load('answer')"),
        ("F = torch.nn.functional", "return F.torch.save(x, 'answer')"),
        ("", "return [torch][0].load('answer')"),
        ("", "return (lambda t: t.load('answer'))(torch)"),
        ("for library in (torch,):\n    pass", "return library.load('answer')"),
        ("", "[0 for torch.Tensor.add in [abs]]; return x"),
        ("", "{torch.relu: 0 for torch.relu in [abs]}; return x"),
        ("", "return '{0.__class__.__mro__}'.format(x)"),
        ("", "return '{0[key]}'.format(x)"),
        ("", "return '{:{0.__class__}}'.format(x)"),
        ("", "return str.format('{0.__class__}', x)"),
        ("", "f = 'x'.format; return f(x)"),
        ("", "return '{x.__class__}'.format_map({'x': x})"),
    ],
)
def test_members_of_modules_are_allowed_one_by_one(top: str, body: str) -> None:
    assert found(f"import torch\n{top}\n" + MODEL.format(body=body)), (top, body)


def test_what_a_kernel_needs_of_modules_is_allowed() -> None:
    top = """import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

L = torch.linalg


@functools.lru_cache(maxsize=None)
def block(size: int) -> int:
    return math.prod(itertools.accumulate([size, 2]))
"""
    body = "f = functools.partial(F.relu, inplace=False); print('{:.2f}'.format(1.0)); return f(x)"
    assert found(top + MODEL.format(body=body)) == []


def test_each_refusal_has_its_own_reason() -> None:
    cases = {
        "def f(:": "does not parse",
        "import os": "computes: files",
        "import torch\ntorch.relu = abs": "shared with the checks",
        "import time": "computes: files",
        "import functools\nf = functools.wraps": "members of a harmless module",
        "import torch\nx = torch.initial_seed": "tell a check from a use",
    }
    for source, said in cases.items():
        first = breaches(Candidate(source, "torch"))
        assert any(item.reason and said in item.reason.why.en for item in first), source


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Late = type('Late', (torch.Tensor,), {})", "uses type for more than a comparison"),
        ("Late = type(*[1, 2, 3])", "uses type for more than a comparison"),
        ("class Late:\n    def __torch_function__(self): ...", "defines __torch_function__"),
        ("class Late:\n    def __getattr__(self, name): ...", "defines __getattr__"),
        ("same = type(1.0) is float", ""),
    ],
)
def test_classes_do_not_answer_in_place_of_torch(line: str, said: str) -> None:
    source = f"import torch\n\n{line}\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
    found = " ".join(item.what.en for item in breaches(Candidate(source, "torch")))
    assert (said in found) if said else not found


def test_a_name_of_many_meanings_is_refused_in_little_time() -> None:
    """Every assignment could double what a name may stand for."""
    lines = [f"a{i + 1} = a{i}.p{j}" for i in range(6) for j in range(40)]
    source = "\n".join(["import torch", "a0 = torch", *lines, "class ModelNew: pass"])
    assert any("several meanings" in item for item in found(source))
