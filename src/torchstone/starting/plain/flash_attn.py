"""Attention with the signatures of flash-attn, computed by torch."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

__version__ = "2.6.0"


def flash_attn_func(
    q: Any, k: Any, v: Any, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False, **_: Any
) -> Any:  # fmt: skip
    """Batch, sequence, heads, width."""
    groups = q.shape[2] // k.shape[2]
    key, value = (item.repeat_interleave(groups, dim=2) for item in (k, v))
    query, key, value = (item.transpose(1, 2) for item in (q, key, value))
    made = functional.scaled_dot_product_attention(
        query, key, value, dropout_p=dropout_p, is_causal=causal, scale=softmax_scale
    )
    return made.transpose(1, 2)


def flash_attn_qkvpacked_func(qkv: Any, *args: Any, **kwargs: Any) -> Any:
    return flash_attn_func(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], *args, **kwargs)


def flash_attn_kvpacked_func(q: Any, kv: Any, *args: Any, **kwargs: Any) -> Any:
    return flash_attn_func(q, kv[:, :, 0], kv[:, :, 1], *args, **kwargs)


class layers:  # noqa: N801  the name of a module of the package
    """`flash_attn.layers`."""


class ops:  # noqa: N801
    """`flash_attn.ops`."""

    RMSNorm = torch.nn.RMSNorm
