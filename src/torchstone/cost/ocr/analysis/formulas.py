"""Closed forms: what each stage costs, from its dimensions alone.

All are FLOPs = 2 x multiply-adds of matrix products, attention and convolutions, with full (not
causal-halved) attention. They are written down independently of the counting engine, and equal
what it counts.
"""

from __future__ import annotations

from typing import Any

from torchstone.cost.ocr.model.shapes import (
    ClipShape,
    OcrShape,
    QueryShape,
    SamShape,
    TextShape,
)


def estimate_prefill_flops_total(
    d_model: int,
    d_ff: int,
    n_layers: int,
    seq_len: int,
    *,
    n_heads: int | None = None,
    n_kv_heads: int | None = None,
    head_dim: int | None = None,
    gated: bool = True,
    n_moe_layers: int = 0,
    moe_d_ff: int = 0,
    n_routed_experts: int = 0,
    n_active_experts: int = 0,
    n_shared_experts: int = 0,
    vocab_size: int = 0,
    lm_head_tokens: int | None = None,
) -> float:
    """FLOPs of one prefill of `seq_len` tokens by a decoder-only model.

    Of `n_layers`, `n_moe_layers` have a mixture of experts instead of the dense feed-forward of
    width `d_ff`; each token runs through the router, `n_active_experts` and `n_shared_experts` of
    width `moe_d_ff`. `gated` feed-forwards (SwiGLU) have three matrices, others two. With a
    `vocab_size`, the head scores all tokens (or the last `lm_head_tokens`).
    """
    heads = n_heads or 1
    width = heads * (head_dim or d_model // heads)
    key_value_width = width * (n_kv_heads or heads) // heads
    matrices = 6 if gated else 4
    attention = 4 * d_model * (width + key_value_width) + 4 * seq_len * width
    experts = 2 * d_model * n_routed_experts
    experts += matrices * d_model * moe_d_ff * (n_active_experts + n_shared_experts)
    dense = matrices * d_model * d_ff
    per_token = n_layers * attention + (n_layers - n_moe_layers) * dense + n_moe_layers * experts
    scored = seq_len if lm_head_tokens is None else lm_head_tokens
    return float(seq_len * per_token + scored * 2 * d_model * vocab_size)


def estimate_decode_flops_per_token(
    d_model: int, d_ff: int, n_layers: int, ctx_len: int, **more: Any
) -> float:
    """FLOPs of one decode step that attends to `ctx_len` tokens, itself among them.

    Takes the same further keywords as `estimate_prefill_flops_total`.
    """
    one = estimate_prefill_flops_total(d_model, d_ff, n_layers, 1, **more)
    heads = more.get("n_heads") or 1
    width = heads * (more.get("head_dim") or d_model // heads)
    return one + float(n_layers * 4 * (ctx_len - 1) * width)


def text_arguments(shape: TextShape) -> dict[str, Any]:
    """The language model's dimensions, as the two estimators take them."""
    return {
        "d_model": shape.hidden_size,
        "d_ff": shape.mlp_size,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "n_kv_heads": shape.key_value_heads,
        "n_moe_layers": shape.expert_layers,
        "moe_d_ff": shape.expert_size,
        "n_routed_experts": shape.routed_experts,
        "n_active_experts": shape.active_experts,
        "n_shared_experts": shape.shared_experts,
        "vocab_size": shape.vocabulary,
    }


def sam_flops(shape: SamShape, side: int) -> int:
    """FLOPs of SAM for one square view of so many pixels a side."""
    grid = side // shape.patch_size
    patches = grid * grid
    width = shape.hidden_size
    total = 2 * patches * width * 3 * shape.patch_size**2
    for layer in range(shape.layers):
        window = grid if layer in shape.global_layers else shape.window_size
        padded = (-(-grid // window) * window) ** 2
        total += 2 * padded * width * 4 * width  # query, key, value and output
        total += 4 * padded * window**2 * width  # scores and their use
        total += 4 * padded * window * width  # relative positions, down and across
        total += 4 * patches * width * shape.mlp_size
    neck = shape.neck_channels
    total += 2 * patches * neck * (width + 9 * neck)
    for channels in shape.downsample_channels:
        grid = -(-grid // 2)
        total += 2 * grid * grid * channels * 9 * neck
        neck = channels
    return total


def encoder_flops(shape: OcrShape, side: int) -> int:
    """FLOPs of the second encoder for one view."""
    tokens = image_side(shape, side) ** 2
    encoder = shape.encoder
    width = encoder.hidden_size
    if isinstance(encoder, ClipShape):
        length = tokens + 1
        layer = 8 * width * width + 4 * length * width + 4 * width * encoder.mlp_size
        return encoder.layers * length * layer
    length = tokens + query_count(encoder, tokens)
    key_value = width * encoder.key_value_heads // encoder.heads
    layer = 4 * width * (width + key_value) + 4 * length * width + 6 * width * encoder.mlp_size
    return encoder.layers * length * layer


def projector_flops(shape: OcrShape, side: int) -> int:
    """FLOPs of the projector for one view."""
    tokens = image_side(shape, side) ** 2
    if isinstance(shape.encoder, QueryShape):
        tokens = query_count(shape.encoder, tokens)
    return 2 * tokens * shape.projector_input * shape.text.hidden_size


def image_side(shape: OcrShape, side: int) -> int:
    """Image tokens along a side, after both strided convolutions."""
    return -(-(side // shape.sam.patch_size) // shape.sam.downsample_ratio)


def query_count(shape: QueryShape, tokens: int) -> int:
    """How many learned queries a view with so many tokens gets."""
    few, many = (count for _, count in shape.queries)
    return few if tokens <= few else many
