"""Attention: 2 x pairs of query and key x (size of a key + size of a value), for every head.

Masks are not subtracted: `flops` is of full attention, and `causal` says which part of it a causal
mask makes needless. The backward is twice the forward (gradients of values, probabilities, queries
and keys). Fused kernels keep no probabilities and form QKᵀ again: that is `extra`.

Vector work, per pair and head: forward 6 (scale, and the softmax's maximum, subtraction,
exponential, sum and division), 1 more for a mask or bias; backward 6 (scale, subtract, exponential,
subtract the row's sum, multiply, scale), and 2 per output element for the rows' sums.

Sequences of unequal length in one batch (`cum_seq`) are summed exactly where their lengths can be
read; on meta tensors all sequences are taken to be of the same length.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, pick, size_bytes

FAMILY = Family("attention")

FORWARD_PER_PAIR = 6
MASK_PER_PAIR = 1
BACKWARD_PER_PAIR = 6
BACKWARD_PER_OUTPUT = 2

TOP_LEFT, BOTTOM_RIGHT = "top left", "bottom right"
"""Where the diagonal of a causal mask begins when there are more keys than queries."""


class Pairs(NamedTuple):
    """Pairs of query and key over all batches and heads."""

    all: int
    needless: int = 0
    """Those that the causal mask hides."""


def pairs_of(heads: int, lengths: Sequence[tuple[int, int]], causal: str = "") -> Pairs:
    """Pairs of `heads` heads over sequences of (queries, keys)."""
    every = sum(queries * keys for queries, keys in lengths)
    seen = sum(seen_pairs(queries, keys, causal) for queries, keys in lengths)
    return Pairs(heads * every, heads * (every - seen))


def seen_pairs(queries: int, keys: int, causal: str = "") -> int:
    """Pairs that a causal mask leaves: query i sees keys up to i (plus the keys before it all)."""
    if not causal:
        return queries * keys
    offset = keys - queries if causal == BOTTOM_RIGHT else 0
    # Row i sees i + 1 + offset keys, never fewer than none and never more than all.
    first = max(0, -offset)
    full = min(max(keys - offset - 1, first), queries)
    growing = full - first
    return growing * (2 * offset + first + full + 1) // 2 + (queries - full) * keys


def forward_count(pairs: Pairs, size_key: int, size_value: int, masked: bool = False) -> Count:
    """Scores and weighted values for so many pairs."""
    per_pair = 2 * (size_key + size_value)
    vector = pairs.all * (FORWARD_PER_PAIR + MASK_PER_PAIR * masked)
    return Count(flops=per_pair * pairs.all, vector=vector, causal=per_pair * pairs.needless)


def backward_count(
    pairs: Pairs, size_key: int, size_value: int, outputs: int, masked: bool = False
) -> Count:
    """Four products instead of two, and the scores once more."""
    forward = forward_count(pairs, size_key, size_value)
    vector = pairs.all * (BACKWARD_PER_PAIR + MASK_PER_PAIR * masked)
    return Count(
        flops=2 * forward.flops,
        vector=vector + BACKWARD_PER_OUTPUT * outputs,
        extra=2 * pairs.all * size_key,
        causal=2 * forward.causal,
    )


def _dense_pairs(query: Tensor, key: Tensor, causal: bool) -> Pairs:
    """Layout (…, heads, sequence, size). Fewer key heads than query heads share their keys."""
    heads = query.shape[:-2].numel()
    return pairs_of(heads, [(query.shape[-2], key.shape[-2])], TOP_LEFT if causal else "")


@FAMILY.counts(
    "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_cudnn_attention",
    "aten._scaled_dot_product_fused_attention_overrideable",
    "aten.scaled_dot_product_attention",
)
def fused(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    query, key, value = args[:3]
    pairs = _dense_pairs(query, key, _is_causal(args, kwargs))
    return forward_count(pairs, query.shape[-1], value.shape[-1], _masked(args[3:], kwargs))


@FAMILY.counts(
    "aten._scaled_dot_product_attention_math", "aten._scaled_dot_product_attention_math_for_mps"
)
def unfused(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The probabilities go through memory: written as scores, read and written by the softmax,
    read by the second product."""
    query, key, value = args[:3]
    pairs = _dense_pairs(query, key, _is_causal(args, kwargs))
    count = forward_count(pairs, query.shape[-1], value.shape[-1], _masked(args[3:], kwargs))
    through = 2 * pairs.all * query.element_size()
    first = out[0] if isinstance(out, (list, tuple)) else out
    return count._replace(
        read=size_bytes([query, key, value]) + size_bytes(kwargs.get("attn_mask")) + through,
        written=size_bytes(first) + through,
    )


@FAMILY.counts(
    "aten._scaled_dot_product_flash_attention_backward",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    "aten._scaled_dot_product_efficient_attention_backward",
    "aten._scaled_dot_product_cudnn_attention_backward",
    "aten._scaled_dot_product_fused_attention_overrideable_backward",
)
def fused_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    grad, query, key, value = args[:4]
    pairs = _dense_pairs(query, key, _is_causal(args, kwargs))
    return backward_count(pairs, query.shape[-1], value.shape[-1], grad.numel())


def _is_causal(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """The flag follows the dropout probability, wherever an overload puts that."""
    if "is_causal" in kwargs:
        return bool(kwargs["is_causal"])
    rest = list(args)
    for index, value in enumerate(rest):
        if isinstance(value, float):
            flags = [item for item in rest[index + 1 :] if isinstance(item, bool)]
            return flags[0] if flags else False
    return False


def _masked(rest: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    mask = kwargs.get("attn_mask", kwargs.get("attn_bias", rest[0] if rest else None))
    return isinstance(mask, Tensor) and mask.dim() > 1


def _rows(query: Tensor, key: Tensor, starts_q: Any, starts_k: Any) -> list[tuple[int, int]]:
    """(queries, keys) of every sequence. Layout (batch, sequence, heads, size), or all sequences
    end to end (sequence, heads, size) with the places where each starts."""
    if starts_q is None or starts_k is None or (query.dim() == 4 and query.shape[0] > 1):
        return [(query.shape[-3], key.shape[-3])] * query.shape[:-3].numel()
    count = max(starts_q.numel() - 1, 1)
    if starts_q.device.type == "meta" or starts_k.device.type == "meta":
        return [(query.shape[-3] // count, key.shape[-3] // count)] * count
    lengths_q, lengths_k = starts_q.diff().tolist(), starts_k.diff().tolist()
    return list(zip(lengths_q, lengths_k, strict=True))


@FAMILY.counts("aten._flash_attention_forward")
def flash(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    query, key, value, starts_q, starts_k = args[:5]
    causal = BOTTOM_RIGHT if pick(args, kwargs, 8, "is_causal") else ""
    pairs = pairs_of(query.shape[-2], _rows(query, key, starts_q, starts_k), causal)
    return forward_count(pairs, query.shape[-1], value.shape[-1])


@FAMILY.counts("aten._flash_attention_backward")
def flash_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    grad, query, key, value, _out, _sums, starts_q, starts_k = args[:8]
    causal = BOTTOM_RIGHT if pick(args, kwargs, 11, "is_causal") else ""
    pairs = pairs_of(query.shape[-2], _rows(query, key, starts_q, starts_k), causal)
    return backward_count(pairs, query.shape[-1], value.shape[-1], grad.numel())


_MASK_TYPES = {1: TOP_LEFT, 2: BOTTOM_RIGHT}


@FAMILY.counts("aten._efficient_attention_forward")
def efficient(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    query, key, value, bias, starts_q, starts_k = args[:6]
    causal = _MASK_TYPES.get(pick(args, kwargs, 9, "custom_mask_type"), "")
    pairs = pairs_of(query.shape[-2], _rows(query, key, starts_q, starts_k), causal)
    return forward_count(pairs, query.shape[-1], value.shape[-1], bias is not None)


@FAMILY.counts("aten._efficient_attention_backward")
def efficient_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    grad, query, key, value, bias, _out, starts_q, starts_k = args[:8]
    causal = _MASK_TYPES.get(pick(args, kwargs, 14, "custom_mask_type"), "")
    pairs = pairs_of(query.shape[-2], _rows(query, key, starts_q, starts_k), causal)
    return backward_count(
        pairs, query.shape[-1], value.shape[-1], grad.numel(), masked=bias is not None
    )


@FAMILY.counts("aten._cudnn_attention_forward")
def cudnn(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    query, key, value, bias = args[:4]
    pairs = _dense_pairs(query, key, bool(pick(args, kwargs, 10, "is_causal")))
    return forward_count(pairs, query.shape[-1], value.shape[-1], bias is not None)


@FAMILY.counts("aten._cudnn_attention_backward")
def cudnn_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    grad, query, key, value = args[:4]
    pairs = _dense_pairs(query, key, bool(pick(args, kwargs, 14, "is_causal")))
    return backward_count(pairs, query.shape[-1], value.shape[-1], grad.numel())


@FAMILY.counts("aten._native_multi_head_attention", "aten._triton_multi_head_attention")
def multi_head(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The fast path of `nn.MultiheadAttention`: three projections in, attention, one out."""
    query, key, _value, width, heads = args[:5]
    return _multi_head(query, key, width, heads, pick(args, kwargs, 9, "mask") is not None)


def _multi_head(query: Tensor, key: Tensor, width: int, heads: int, masked: bool) -> Count:
    batch, queries, keys = query.shape[0], query.shape[1], key.shape[1]
    inner = forward_count(
        pairs_of(batch * heads, [(queries, keys)]), width // heads, width // heads, masked
    )
    projected = batch * (2 * queries + 2 * keys)
    return Count(
        flops=inner.flops + 2 * projected * width * width,
        vector=inner.vector + projected * width,
    )


LAYER_VECTOR_PER_FEATURE = 2 * 7 + 2 * 1
"""Two layer norms with weight and bias, and two residual additions."""


@FAMILY.counts("aten._transformer_encoder_layer_fwd")
def encoder_layer(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The fast path of `nn.TransformerEncoderLayer`: attention and two linear layers."""
    source, width, heads = args[:3]
    hidden = args[14].shape[0]
    inner = _multi_head(source, source, width, heads, pick(args, kwargs, 18, "mask") is not None)
    tokens = source.shape[0] * source.shape[1]
    vector = tokens * (LAYER_VECTOR_PER_FEATURE * width + 2 * hidden + width)
    return Count(flops=inner.flops + 4 * tokens * width * hidden, vector=inner.vector + vector)


@FAMILY.counts("aten._triton_scaled_dot_attention")
def triton(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    query, key, value = args[:3]
    return forward_count(_dense_pairs(query, key, False), query.shape[-1], value.shape[-1])


@FAMILY.counts("aten._transform_bias_rescale_qkv")
def split_heads(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A bias on everything, a scale on the queries."""
    return Count(vector=args[0].numel() + elements(out) // 3)


@FAMILY.counts("aten._fused_sdp_choice")
def choice(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Looks at shapes only."""
    return Count(read=0, written=0)


def _meta(*shape: int) -> Tensor:
    return torch.empty(*shape, device="meta")


def _flash(heads: int, kv_heads: int, queries: int, keys: int, causal: bool) -> object:
    return torch.ops.aten._scaled_dot_product_flash_attention(
        _meta(2, heads, queries, 8),
        _meta(2, kv_heads, keys, 8),
        _meta(2, kv_heads, keys, 8),
        0.0,
        causal,
    )


FAMILY.example(
    lambda: functional.scaled_dot_product_attention(
        _meta(2, 4, 16, 8), _meta(2, 4, 16, 8), _meta(2, 4, 16, 8)
    ),
    flops=65536,
    why="2 x batch 2 x heads 4 x 16 x 16 pairs x (8 + 8)",
)
FAMILY.example(
    lambda: _flash(4, 4, 16, 16, causal=True),
    flops=65536,
    vector=2 * 4 * 16 * 16 * 6,
    causal=2 * 2 * 4 * 120 * 16,
    why="full pairs in flops; 16 x 15 / 2 = 120 of 256 pairs are needless",
)
FAMILY.example(
    lambda: _flash(4, 2, 16, 16, causal=False),
    flops=65536,
    causal=0,
    why="two key heads shared by four query heads: as many products as with four",
)
