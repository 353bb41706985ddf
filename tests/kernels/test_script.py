"""Functions of scripts as candidates: what they need is kept, what else the file does is not run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchstone.core.errors import InputError
from torchstone.kernels import Candidate, verify
from torchstone.kernels.candidate import load_candidate
from torchstone.kernels.problem import PARTS, problem_from_source
from torchstone.kernels.script import function_as_candidate, split_function, without_candidate
from torchstone.kernels.sessions.workshop import Workshop

SCRIPT = '''"""A kernel with its test and its benchmark."""
import os
import tabulate
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
sizes = [256]
if "CI" in os.environ:
    sizes = [64]
BLOCK = sizes[0]


@triton.jit
def scale_kernel(x, y, n, factor, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


def scale(x, factor, other):
    assert x.device == DEVICE
    y = torch.empty_like(x)
    compiled = scale_kernel.warmup(x, y, x.numel(), factor, SIZE=BLOCK, grid=(1,))
    compiled._init_handles()
    if x.numel() and compiled.n_regs:
        compiled[(triton.cdiv(x.numel(), BLOCK), 1, 1)](x, y, x.numel(), factor, BLOCK)
    return y


x = torch.randn(100, device=DEVICE)
print(tabulate.tabulate([scale(x, 2.0, x).tolist()]))
sizes = [open("/etc/passwd").read()]
doubled = lambda x: scale(x, 2.0, x)
'''
PROBLEM = """import torch


class Model(torch.nn.Module):
    def forward(self, x, factor, other):
        return x * factor


def get_inputs():
    return [torch.randn(700).cuda(), 1.5, torch.randn(3, device="cuda")]


def get_init_inputs():
    return []
"""


def test_what_a_function_needs_is_kept_at_its_line() -> None:
    found = function_as_candidate(SCRIPT, "scale", "s.py")
    lines = found.split("\n")
    assert "tabulate" not in found
    assert "passwd" not in found
    assert "import os" not in found
    assert lines[8:12] == [
        "sizes = [256]",
        'if "CI" in {}:',
        "    sizes = [64]",
        "BLOCK = sizes[0]",
    ]
    assert lines[20] == "def scale(x, factor, other):"
    assert "x = torch.randn" not in found  # a name of the function's own
    assert [node.name for node in ast.parse(found).body if isinstance(node, ast.ClassDef)] == [
        "ModelNew"
    ]


def test_a_name_bound_to_a_function_will_do() -> None:
    found = function_as_candidate(SCRIPT, "doubled", "s.py")
    assert "def scale(" in found
    assert "return doubled(*inputs)" in found


def test_a_name_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text(SCRIPT, "utf-8")
    with pytest.raises(InputError, match="scale_kernel, scale"):
        load_candidate(f"{path}:scal", "triton")
    assert split_function(f"{path}:scale") == (path, "scale")
    assert split_function(str(path)) == (path, "")


@pytest.mark.usefixtures("few_sizes")
def test_a_function_of_a_script_is_judged_as_it_stands(workshop: Workshop) -> None:
    """Written for contiguous memory: that is refused, unless the problem's own layout is all that is asked."""
    candidate = Candidate(function_as_candidate(SCRIPT, "scale", "s.py"), "triton")
    problem = problem_from_source(PROBLEM, "scale")
    own = verify(problem, candidate, seeds=2, layouts="own", workshop=workshop)
    assert own.accepted, own.error_log()
    families = next(item for item in own.results if item.gate == "families")
    assert "--layouts own" in families.detail.en
    refused = verify(problem, candidate, seeds=2, workshop=workshop)
    assert not refused.accepted
    assert "strided" in refused.error_log()


def test_a_problem_in_the_candidates_file_is_without_the_candidates_language() -> None:
    source = "import torch\nimport triton\nSIZE = 8\ntorch.manual_seed(0)\n" + PROBLEM.replace(
        "700", "SIZE"
    )
    source += "\n\nDEVICE = triton.runtime.driver.active.get_active_torch_device()\nprint(DEVICE)\n"
    source += "\n\ndef helper(x):\n    return triton.cdiv(x, SIZE)\n\n\nclass ModelNew:\n    def forward(self, x):\n        return helper(x)\n"
    left = without_candidate(source, "ModelNew", PARTS)
    assert len(left.split("\n")) == len(source.split("\n"))
    for name in ("import torch", "SIZE = 8", "manual_seed", "class Model("):
        assert name in left
    for name in ("triton", "helper", "ModelNew", "DEVICE"):
        assert name not in left
