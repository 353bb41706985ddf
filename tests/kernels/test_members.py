"""Of torch, numpy, triton and numba a kernel uses the members that compute, and no others."""

from __future__ import annotations

import importlib
import inspect
import types

import pytest

from torchstone.kernels.candidate import Candidate, Implementation
from torchstone.kernels.policy.allowed import ALLOWED
from torchstone.kernels.policy.check import breaches

LOADED = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.fft", "torch.linalg",
    "torch.special", "torch.cuda", "torch.autograd", "numpy", "numpy.linalg", "numpy.fft",
    "numpy.lib.stride_tricks",
)  # fmt: skip
SINKS = frozenset(
    "load save from_file frombuffer fromfile memmap tofile loadtxt savetxt genfromtxt fork wait onnx hub "
    "jit ops library utils classes package compile export fx serialization bmat DataSource ctypeslib "
    "PyTorchFileReader PyTorchFileWriter parse_ir import_ir_module set_num_threads set_default_dtype "
    "UntypedStorage from_dlpack to_dlpack carray farray objmode inline_asm_elementwise pointer_type "
    "sparse_csr_tensor sparse_coo_tensor".split()
)
"""Names that read files, load or run code, change state, or lead to memory of others."""


def refused_lines(module: str, names: list[str]) -> set[str]:
    """The names that the policy refuses as members of a module."""
    lines = [f"{name} = (module.{name},)" for name in names]
    source = "\n".join([f"import {module} as module", *lines, "class ModelNew:", "    pass"])
    found = {item.line for item in breaches(Candidate(source, "torch"))}
    return {name for line, name in enumerate(names, 2) if line in found}


@pytest.mark.parametrize("module", LOADED)
def test_public_members_are_on_the_list_or_refused(module: str) -> None:
    home = importlib.import_module(module)
    modules = {name for name in ALLOWED if name.rpartition(".")[0] == module}
    public = [name for name in dir(home) if name[0] != "_" and name.isidentifier()
              and f"{module}.{name}" not in modules]  # fmt: skip
    left_out = [name for name in public if name not in ALLOWED[module]]
    assert set(left_out) - refused_lines(module, left_out) == set()


@pytest.mark.parametrize("module", LOADED)
def test_members_on_the_list_are_there_and_are_no_modules(module: str) -> None:
    home = importlib.import_module(module)
    for name in ALLOWED[module]:
        value = getattr(home, name)
        assert not isinstance(value, types.ModuleType), name
        where = inspect.getmodule(value) if inspect.isfunction(value) else None
        assert where is None or not where.__name__.startswith(
            (
                "torch.serialization",
                "torch.hub",
                "torch._utils_internal",
                "torch.utils",
                "numpy.lib._npyio",
            )
        ), name


def test_no_list_holds_what_reaches_beyond_its_arrays() -> None:
    own = {"load", "jit"}  # in the languages of kernels: memory is read, a kernel is made
    for module, names in ALLOWED.items():
        of_kernels = module.partition(".")[0] in ("triton", "numba")
        assert not names & (SINKS - own if of_kernels else SINKS), module


@pytest.mark.parametrize(
    ("implementation", "line"),
    [
        ("torch", "import torch.onnx"),
        ("numba", "import numba.np as inner"),
        ("numba", "import numba.core.types as kinds; kinds.functions"),
        ("triton", "from triton.language.extra import libdevice as l; l.exp.fn"),
        ("torch", "from torch import onnx"),
        ("torch", "torch.onnx.export"),
        ("torch", "torch.PyTorchFileReader('f')"),
        ("torch", "torch.fork(print)"),
        ("torch", "torch.sparse_csr_tensor([0], [9], [1.0])"),
        ("torch", "torch.frombuffer(b'a', dtype=torch.uint8)"),
        ("torch", "torch.ones(3)._base"),
        ("torch", "torch.ones(3).numpy().base"),
        ("torch", "torch.ones(3).numpy().setflags(write=True)"),
        ("torch", "class A:\n    __array_interface__ = {'data': (4096, False)}"),
        ("torch", "class A:\n    __torch_function__: object = None"),
        ("torch", "import math as __array_struct__"),
        ("numpy", "import numpy as np\nnp.bmat('A')"),
        ("numpy", "import numpy as np\nnp.frombuffer(b'a')"),
        ("numpy", "import scipy.linalg\nscipy.linalg.blas"),
        ("triton", "kernel.fn = print"),
        ("triton", "kernel.rewriter"),
        ("triton", "tl.pointer_type(tl.float32)"),
        ("triton", "tl.inline_asm_elementwise"),
        ("numba", "kernel.py_func"),
        ("numba", "numba.carray"),
        ("numba", "numba.experimental"),
        ("numba", "numba.types.functions"),
        ("numba", 'make = numba.njit\nmake("print(1)")(kernel)'),
        ("numba", 'from numba import njit as make\nmake("print(1)")(kernel)'),
        ("numba", 'import functools\nfunctools.partial(numba.njit, "print(1)")()(kernel)'),
        ("numba", 'list(map(numba.njit, ["print(1)"]))'),
        ("numba", 'numba.njit("float32(float32) if print(1) is None else 0")(kernel)'),
        ("numba", 'numba.njit("__import__")(kernel)'),
        ("numba", 'TEXT = "float32"\nnumba.njit(TEXT)(kernel)'),
        ("numba", 'numba.vectorize(["float32(" + "float32)"])(kernel)'),
        ("numba", "HOW = {'forceobj': True}\nnumba.jit(**HOW)(kernel)"),
        ("numba", "@numba.cuda.jit\ndef other(x):\n    x[0] = x.max()"),
        ("numba", "@numba.cuda.jit\ndef other(x):\n    x[0] = [1.0][0]"),
    ],
)  # fmt: skip
def test_ways_to_other_memory_and_code_are_refused(
    implementation: Implementation, line: str
) -> None:
    source = f"{TOPS.get(implementation, 'import torch')}\n{line}\n{MODEL[implementation]}"
    plain = source.replace(f"{line}\n", "")
    assert not breaches(Candidate(plain, implementation))
    assert breaches(Candidate(source, implementation))


TOPS = {
    "triton": "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
    "def kernel(x):\n    tl.store(x, 1.0)\n",
    "numba": "import numba\n\n\n@numba.njit\ndef kernel(x):\n    x[0] = 1.0\n",
}
_PLAIN = "class ModelNew:\n    def forward(self, x):\n        return x\n"
MODEL = {
    "torch": _PLAIN,
    "numpy": _PLAIN,
    "triton": "class ModelNew:\n    def forward(self, x):\n        kernel[(1,)](x)\n",
    "numba": "class ModelNew:\n    def forward(self, x):\n        kernel(x)\n",
}


@pytest.mark.parametrize(
    "line",
    [
        'numba.njit("float32(float32[:, ::1], int64)", parallel=True, fastmath={"nnan"})(kernel)',
        'numba.guvectorize(["void(float32[:], float32[:])"], "(n)->(n)", target="parallel")(kernel)',
        "numba.njit(numba.float32(numba.float32[:]), cache=False)(kernel)",
        "numba.vectorize([numba.float32(numba.float32)])(kernel)",
    ],
)
def test_signatures_of_types_are_fine(line: str) -> None:
    assert not breaches(Candidate(f"{TOPS['numba']}\n{line}\n{MODEL['numba']}", "numba"))


def test_members_of_its_own_may_have_any_name() -> None:
    source = """import torch


class ModelNew(torch.nn.Module):
    _scale = 2.0

    def __init__(self, base):
        super().__init__()
        self.base = base
        self._kept = None
        self.register_buffer("_table", torch.ones(3))

    def forward(self, x):
        return self._twice(x) * self._scale + self.base + self._table

    def _twice(self, x):
        return 2 * x
"""
    assert not breaches(Candidate(source, "torch"))
