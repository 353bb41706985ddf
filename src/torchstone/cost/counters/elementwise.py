"""Elementwise operators: one FLOP per output element, whatever the function.

An in-place operator reads and writes its own tensor, so its traffic is that of the plain one.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, size_bytes

FAMILY = Family("elementwise")

_WITH_IN_PLACE = """
_add_relu abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp
clamp_max clamp_min clip conj_physical copysign cos cosh deg2rad digamma div divide elu eq erf
erfc erfinv exp exp2 expm1 float_power floor floor_divide fmod frac gcd ge gelu gt hardsigmoid
hardswish hardtanh heaviside hypot i0 igamma igammac lcm ldexp le leaky_relu lerp lgamma log
log10 log1p log2 logical_and logical_not logical_or logical_xor logit lt masked_fill mish mul
multiply mvlgamma nan_to_num ne neg nextafter polygamma pow rad2deg reciprocal relu relu6
remainder round rrelu_with_noise rsqrt selu sgn sigmoid sign silu sin sinc sinh sqrt square sub
subtract tan tanh threshold true_divide trunc xlogy
"""
_WITHOUT = """
__and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__ __or__ __rshift__ __xor__
_conj_physical _masked_scale _prelu_kernel _prelu_kernel_backward absolute angle complex
elu_backward fmax fmin frexp gelu_backward greater hardshrink hardshrink_backward
hardsigmoid_backward hardswish_backward hardtanh_backward
infinitely_differentiable_gelu_backward isfinite isin isinf isnan isneginf isposinf
leaky_relu_backward less log_sigmoid_backward log_sigmoid_forward logaddexp logaddexp2
logit_backward maximum minimum mish_backward native_dropout_backward negative not_equal polar
rrelu_with_noise_backward rrelu_with_noise_functional rsub sigmoid_backward signbit
silu_backward softplus softplus_backward softshrink softshrink_backward special_airy_ai
special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
special_chebyshev_polynomial_w special_entr special_erf special_erfcx special_expit
special_hermite_polynomial_h special_hermite_polynomial_he special_i0 special_i0e special_i1
special_i1e special_laguerre_polynomial_l special_legendre_polynomial_p special_log_ndtr
special_logit special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
special_modified_bessel_k1 special_ndtri special_scaled_modified_bessel_k0
special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t
special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
special_shifted_chebyshev_polynomial_w special_spherical_bessel_j0 special_xlog1py special_zeta
tanh_backward threshold_backward where
"""


def _names() -> list[str]:
    plain = [*_WITH_IN_PLACE.split(), *_WITHOUT.split()]
    return [f"aten.{name}" for name in plain] + [f"aten.{name}_" for name in _WITH_IN_PLACE.split()]


@FAMILY.counts(*_names())
def pointwise(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    first = out[0] if isinstance(out, (list, tuple)) else out
    return Count(vector=elements(first))


@FAMILY.counts("aten.native_dropout", "aten._fused_dropout")
def dropout(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A random number, a comparison and a scaled multiplication."""
    return Count(vector=3 * args[0].numel())


@FAMILY.counts("aten.glu", "aten.glu_jvp")
def gated(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A sigmoid and a multiplication."""
    return Count(vector=2 * elements(out))


@FAMILY.counts("aten.glu_backward", "aten.glu_backward_jvp")
def gated_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Two per element of the input: the value's half is scaled, the gate's half takes four."""
    return Count(vector=2 * elements(out))


@FAMILY.counts("aten.linalg_cross")
def cross(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Two multiplications and a subtraction."""
    return Count(vector=3 * elements(out))


@FAMILY.counts("aten._amp_update_scale_", "aten._amp_update_scale")
def scale_update(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=1, read=size_bytes(args), written=size_bytes(args[:2]))


FAMILY.example(
    lambda: torch.add(torch.empty(4, 8, device="meta"), torch.empty(8, device="meta")),
    vector=32,
    read=4 * (32 + 8),
    written=4 * 32,
    why="32 outputs; the row of 8 is read once",
)
FAMILY.example(
    lambda: torch.empty(4, 8, device="meta").add_(1),
    vector=32,
    read=128,
    written=128,
    why="an in-place operator reads and writes its tensor",
)
FAMILY.example(
    lambda: torch.nn.functional.gelu(torch.empty(5, dtype=torch.bfloat16, device="meta")),
    vector=5,
    read=10,
    written=10,
    why="one per element, two bytes each",
)
