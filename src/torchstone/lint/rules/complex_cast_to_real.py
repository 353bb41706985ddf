"""Casting complex numbers to real ones throws the imaginary part away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.dtypes import (
    COMPLEX_IDENTIFIERS,
    INVERSE_TRANSFORMS,
    complex_source,
    speaks_of_complex,
)
from torchstone.lint.rule import HIGH, LIKELY, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS118",
    "complex-cast-to-real",
    severity=HIGH,
    confidence=LIKELY,
    also=COMPLEX_IDENTIFIERS,
    say=Text(
        en="`{cast}` discards the imaginary part of a complex value",
        zh="`{cast}` 会丢弃复数值的虚部",
    ),
    why=Text(
        en="`{source}` gives complex numbers; the cast keeps the real parts only, and torch warns "
        "about it once per process",
        zh="`{source}` 的结果是复数；该转换只保留实部，torch 每个进程只警告一次",
    ),
    suggest=Text(
        en="say what is meant: `.abs()` for the magnitude, `.real`, or torch.view_as_real(…)",
        zh="写明意图：幅值用 `.abs()`，实部用 `.real`，或用 torch.view_as_real(…)",
    ),
    title=Text(
        en="A cast of a complex tensor to a real type discards its imaginary part",
        zh="将复数张量转换为实数类型会丢弃虚部",
    ),
    page=Text(
        en="""\
`.float()`, `.half()`, `.double()` and `.to(torch.float32)` of a complex tensor keep the real part.
The warning "Casting complex values to real discards the imaginary part" appears once, gradients of
the imaginary part are 0.

Reported where the value plainly comes from a forward Fourier transform, `torch.stft(…,
return_complex=True)`, `torch.complex`, `torch.polar`, `torch.view_as_complex`, `torch.linalg.eigvals`
or a complex dtype. After an inverse transform the imaginary part is usually rounding noise: then it
is `possible` only, and `.real` (or `irfft`) says so. Quiet in tests.""",
        zh="""\
对复数张量调用 `.float()`、`.half()`、`.double()` 或 `.to(torch.float32)` 只保留实部。警告 "Casting complex values to
real discards the imaginary part" 只出现一次，虚部的梯度为 0。

仅当值明显来自正向傅里叶变换、`torch.stft(…, return_complex=True)`、`torch.complex`、`torch.polar`、
`torch.view_as_complex`、`torch.linalg.eigvals` 或复数 dtype 时报告。逆变换之后的虚部通常只是舍入噪声，只按 `possible`（可能）
报告，此时应写 `.real`（或用 `irfft`）。测试中不报告。""",
    ),
    bad="""\
import torch

def spectrum(x):
    return torch.fft.rfft(x).float()
""",
    good="""\
import torch

def spectrum(x):
    return torch.fft.rfft(x).abs()
""",
)
_REAL = frozenset(("float16", "bfloat16", "float32", "float64"))
_CASTS = ("float", "half", "double", "bfloat16")


@RULE.on_call(*_CASTS, "to", "type")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A cast to a real type of what is complex."""
    method = scene.method(call)
    if not method or not speaks_of_complex(scene):
        return
    if method in ("to", "type"):
        given = [*call.args, *(k.value for k in call.keywords if k.arg == "dtype")]
        if not any(
            not isinstance(item, ast.Constant) and scene.dtype_literal(item) in _REAL
            for item in given
        ):
            return
    elif call.args:
        return
    source = complex_source(scene, scene.receiver(call))
    if source and not scene.is_test:
        yield RULE.at(
            call,
            confidence=POSSIBLE if source in INVERSE_TRANSFORMS else LIKELY,
            cast=scene.brief(call),
            source=source,
        )
