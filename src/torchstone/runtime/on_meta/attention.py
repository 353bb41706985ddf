"""On the meta device attention takes the form of the fused kernel that a GPU would run.

Left alone, PyTorch decomposes attention on meta tensors into plain matrix products: the FLOPs are
right, but the S x S scores appear as memory and traffic that no GPU ever sees.
"""

from __future__ import annotations

import warnings

import torch

from torchstone.observe.undo import Undo

_aten = torch.ops.aten


def fused_attention(undo: Undo) -> None:
    """From now on `scaled_dot_product_attention` of meta tensors becomes one fused operator."""
    library = torch.library.Library("aten", "IMPL")
    undo.later(library._destroy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is replaced is what is wanted
        library.impl("scaled_dot_product_attention", attend, "AutogradMeta")


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """The operator a GPU would take: flash where it can, the memory-efficient one otherwise."""
    if query.dim() != 4:
        lead = query.shape[:-2]
        q, k, v = (item.reshape(-1, 1, *item.shape[-2:]) for item in (query, key, value))
        mask = attn_mask
        if mask is not None and mask.dim() > 2:
            mask = mask.reshape(-1, 1, *mask.shape[-2:])
        out = attend(q, k, v, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        return out.reshape(*lead, *out.shape[-2:])
    if attn_mask is None and query.shape[-1] == value.shape[-1]:
        outputs = _aten._scaled_dot_product_flash_attention.default(
            query, key, value, dropout_p, is_causal, False, scale=scale
        )
        return outputs[0]  # type: ignore[no-any-return]
    heads = query.shape[1]
    if key.shape[1] != heads:  # the memory-efficient kernel knows no grouped heads
        key = key.repeat_interleave(heads // key.shape[1], 1)
        value = value.repeat_interleave(heads // value.shape[1], 1)
    bias = None
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.empty_like(attn_mask, dtype=query.dtype)
        bias = attn_mask.expand(*query.shape[:3], key.shape[2])
    keep = torch.is_grad_enabled() and any(
        item.requires_grad for item in (query, key, value, bias) if item is not None
    )
    outputs = _aten._scaled_dot_product_efficient_attention.default(
        query, key, value, bias, keep, dropout_p, is_causal, scale=scale
    )
    return outputs[0]  # type: ignore[no-any-return]
