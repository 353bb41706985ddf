"""A candidate: source that defines `ModelNew`, and the implementation that it claims to be."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from torchstone.core.errors import UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.kernels.problem import PARTS, parse, read_source
from torchstone.kernels.script import function_as_candidate, split_function

Implementation = Literal["triton", "numba", "c", "torch", "numpy", "swft"]
IMPLEMENTATIONS: tuple[Implementation, ...] = get_args(Implementation)
ELSEWHERE = {
    "cuda": Text("CUDA kernels need nvcc and an NVIDIA GPU; this verifier runs neither",
                 "CUDA 内核需要 nvcc 与 NVIDIA GPU，本验证器不运行它们"),
    "hip": Text("HIP kernels need hipcc and an AMD GPU; this verifier runs neither",
                "HIP 内核需要 hipcc 与 AMD GPU，本验证器不运行它们"),
    "cute": Text("CuTe kernels need CUTLASS, its compiler and an NVIDIA GPU; this verifier runs none of them",
                 "CuTe 内核需要 CUTLASS 及其编译器与 NVIDIA GPU，本验证器不运行它们"),
    "tilelang": Text("TileLang kernels need the tilelang compiler and a GPU; this verifier runs neither",
                     "TileLang 内核需要 tilelang 编译器与 GPU，本验证器不运行它们"),
    "thunderkittens": Text("ThunderKittens kernels need nvcc and an NVIDIA GPU of the Hopper family or newer; this "
                           "verifier runs neither",
                           "ThunderKittens 内核需要 nvcc 与 Hopper 或更新的 NVIDIA GPU，本验证器不运行它们"),
}  # fmt: skip
"""Languages that are recognised and cannot be run here, with what is missing."""
JUDGED_ELSEWHERE = Text(
    "judge it on a machine with that device, or verify a version in triton, numba, c, torch or numpy here",
    "请在装有该设备的机器上评判，或在此验证 triton、numba、c、torch 或 numpy 版本",
)
_SIGNS: tuple[tuple[str, str], ...] = (
    ("thunderkittens", r"kittens\.cuh|\bimport thunderkittens\b|namespace kittens"),
    ("cute", r"\bcutlass\.cute\b|cute/tensor\.hpp|\bfrom cutlass import cute\b"),
    ("tilelang", r"^\s*(import|from)\s+tilelang\b"),
    ("hip", r"hip/hip_runtime\.h|\bhipLaunchKernelGGL\b"),
    ("cuda", r"\bload_inline\s*\(|\b__global__\b|cuda_runtime\.h|<<<"),
    ("triton", r"^\s*(import|from)\s+triton\b"),
    ("numba", r"^\s*(import|from)\s+numba\b"),
    ("c", r"^(C|CPP)_SOURCE\s*=|\bfrom torchstone_kernel import\b"),
    ("swft", r"^\s*(import|from)\s+swft\b"),
)
"""By which a candidate's language is known, the most particular first."""
WITH_KERNELS = frozenset({"triton", "numba", "c", "swft"})
"""Implementations that have kernels of their own, which must do the work."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The source of a `ModelNew` and what it is written in."""

    source: str
    implementation: Implementation


def load_candidate(path: str | Path, implementation: str) -> Candidate:
    """The candidate in a file, or one of its functions (`FILE.py:FUNCTION`); a problem that stands in the same file
    is no part of it."""
    file, function = split_function(str(path))
    source = without_problem(read_source(file))
    if function:
        parse(source, str(file))
        source = function_as_candidate(source, function, str(path))
    return Candidate(source, known_implementation(implementation))


def without_problem(source: str) -> str:
    """The source without the parts of a problem, every other line at its own number."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source  # the gates say what is the matter with it
    lines = source.split("\n")
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in PARTS:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            for number in range(first - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(lines)


def recognised_language(source: str) -> str:
    """What a candidate is written in, by what it imports or holds; torch where nothing says more."""
    for name, sign in _SIGNS:
        if re.search(sign, source, re.MULTILINE):
            return name
    return "torch" if re.search(r"^\s*(import|from)\s+torch\b", source, re.MULTILINE) else "numpy"


def known_implementation(name: str) -> Implementation:
    """The implementation of this name; a UsageError with the nearest name for another."""
    for known in IMPLEMENTATIONS:
        if name == known:
            return known
    if name in ELSEWHERE:
        raise UsageError("kernel: --impl", name, ELSEWHERE[name], JUDGED_ELSEWHERE)
    raise unknown("kernel: --impl", name, IMPLEMENTATIONS)
