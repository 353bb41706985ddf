"""What the shadow run must know of an operator: views, writes, randomness, kinks."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

RANDOM = frozenset(
    "bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal normal_ "
    "poisson rand rand_like randint randint_like randn randn_like random_ randperm "
    "rrelu_with_noise rrelu_with_noise_ uniform_ native_dropout _fused_dropout "
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split()
)
"""Operators whose result comes from a generator, or is whatever lay in memory: the low run is followed. The tag `nondeterministic_seeded` is no use: attention
without dropout has it too."""

KINKS = frozenset(
    "threshold_backward max_pool2d_with_indices max_pool2d_with_indices_backward "
    "max_pool3d_with_indices max_pool3d_with_indices_backward adaptive_max_pool2d "
    "adaptive_max_pool2d_backward where topk sort argmax argmin max min amax amin median mode "
    "masked_fill masked_fill_ index index_put index_put_ _index_put_impl_ gather scatter scatter_ "
    "scatter_add scatter_add_ index_select index_add index_add_ embedding hardtanh_backward clamp "
    "leaky_relu_backward hardsigmoid_backward hardswish_backward elu_backward round floor ceil sign "
    "trunc kthvalue evaluate_function value_selecting_reduction_backward cummax cummin "
    "_adaptive_avg_pool2d_backward unique_consecutive bucketize relu relu_ threshold threshold_".split()
)
"""Where a value just below and just above a point goes different ways: a few flips make large errors in
healthy networks. They are counted, not blamed."""

CARRIERS = frozenset(
    "sqrt sqrt_ rsqrt rsqrt_ reciprocal reciprocal_ abs neg clone expand _to_copy unsqueeze pow "
    "clamp_min mul mul_".split()
)
"""A zero that goes in comes out as a zero or an infinity: the cause lies before them."""

DIVISIONS = frozenset(
    "div div_ rsqrt rsqrt_ reciprocal reciprocal_ log log_ log2 log10 pow".split()
)


AUXILIARY = frozenset(
    "native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention".split()
)
"""Their further results (saved statistics, log-sum-exp) are only there for the backward: they are judged
by the first result. The mean of a centred row is zero, and any error of it infinitely large."""


@dataclass(frozen=True, slots=True)
class Operator:
    """The facts about one overload."""

    name: str
    view: bool
    """Its result is another look at an argument, and nothing is written."""
    written: tuple[int, ...]
    """Positions of arguments that are written to."""
    written_names: tuple[str, ...]
    """Keyword-only ones (`out`)."""
    random: bool
    kink: bool
    auxiliary: bool
    """Only its first result is an output of its own."""


@functools.cache
def operator_facts(func: Any) -> Operator:
    """Read from the operator's schema once."""
    schema = func._schema
    name = schema.name.partition("::")[2]
    written, names = [], []
    aliased = False
    for place, argument in enumerate(schema.arguments):
        info = argument.alias_info
        if info is None:
            continue
        if not info.is_write:
            aliased = True
        elif argument.kwarg_only:
            names.append(argument.name)
        else:
            written.append(place)
    returns_alias = any(item.alias_info is not None for item in schema.returns)
    view = aliased and returns_alias and not written and not names
    if (
        torch.Tag.inplace_view in func.tags
    ):  # `transpose_` changes how memory is seen, not the memory
        view = name not in ("resize_", "set_")
    if name in (
        "native_batch_norm",
        "_batch_norm_impl_index",
        "cudnn_batch_norm",
        "miopen_batch_norm",
    ):
        written += [3, 4]  # the running statistics: the schema does not say so
    return Operator(
        name, view, tuple(written), tuple(names), name in RANDOM, name in KINKS, name in AUXILIARY
    )
