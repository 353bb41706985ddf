"""Prefill and decode of a model with a KV cache, counted at chosen lengths of the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import UsageError
from torchstone.core.pictures import Cell, Table
from torchstone.core.text import Text
from torchstone.cost.counting.engine import output_of, run
from torchstone.cost.records.ledger import Cost


@dataclass(frozen=True)
class Served:
    """One length of the context: filling the cache, then one token with it."""

    batch: int
    context: int
    prefill: Cost
    decode: Cost
    cache_bytes: int
    cache_heads: int
    """The fewest key and value heads of a layer: more ranks than that keep copies."""


def serve(model: nn.Module, batch: int, context: int, replay: bool = True) -> Served:
    """Count a prefill of `context` tokens and the decoding of one more for each sequence."""
    ids = torch.empty(batch, context, dtype=torch.long, device="meta")
    one = torch.empty(batch, 1, dtype=torch.long, device="meta")
    shapes = _cache_shapes(model, batch)
    prefill = run(model, {"input_ids": ids, "use_cache": True}, replay=replay)

    def with_cache() -> dict[str, Any]:
        return {
            "input_ids": one,
            "use_cache": True,
            "past_key_values": _filled(model, shapes, context),
        }

    decode = run(model, with_cache, replay=replay)
    size = sum(_bytes(shape, dtype, context) for shape, dtype in shapes)
    heads = min(shape[1] if len(shape) == _SPLIT else 1 for shape, _ in shapes)
    return Served(batch, context, prefill, decode, size, heads)


Shape = tuple[tuple[int, ...], torch.dtype]
_SPLIT = 4
"""Axes of keys that are split into heads: batch, heads, tokens, numbers of a head."""


def _cache_shapes(model: nn.Module, batch: int) -> list[Shape]:
    """What the cache holds after one token: keys and values of each layer, in turn."""
    one = torch.empty(batch, 1, dtype=torch.long, device="meta")
    try:
        output = output_of(model, {"input_ids": one, "use_cache": True})
    except Exception as error:  # whatever the model raises, it cannot be asked for a cache
        said = (str(error).splitlines() or [""])[0]
        raise _no_cache(f"{type(model).__name__}: {said}") from None
    layers = getattr(getattr(output, "past_key_values", None), "layers", None)
    found: list[Shape] = []
    for layer in layers or ():
        for name in ("keys", "values"):
            tensor = getattr(layer, name, None)
            if isinstance(tensor, torch.Tensor):
                found.append((tuple(tensor.shape), tensor.dtype))
    if not found or len(found) != 2 * len(layers or ()):
        raise _no_cache(type(model).__name__)
    return found


def _no_cache(given: str) -> UsageError:
    return UsageError(
        "cost: --context",
        given,
        Text(
            "a transformers model that keeps keys and values of every layer in its cache",
            "在缓存中保存每层键与值的 transformers 模型",
        ),
        Text(
            "leave --context out, or pass a decoder (hf:llama)",
            "去掉 --context，或传入解码器（hf:llama）",
        ),
    )


def _filled(model: nn.Module, shapes: Sequence[Shape], context: int) -> Any:
    """A cache that holds `context` tokens."""
    one = torch.empty(shapes[0][0][0], 1, dtype=torch.long, device="meta")
    cache = output_of(model, {"input_ids": one, "use_cache": True}).past_key_values
    for layer in cache.layers:
        for name in ("keys", "values"):
            tensor = getattr(layer, name)
            setattr(layer, name, tensor.new_empty(*tensor.shape[:-2], context, tensor.shape[-1]))
    return cache


def _bytes(shape: tuple[int, ...], dtype: torch.dtype, context: int) -> int:
    count = dtype.itemsize * context
    for size in (*shape[:-2], shape[-1]):
        count *= size
    return count


def served_table(served: Sequence[Served], times: dict[str, list[float]]) -> Table:
    """Prefill and decode by context; `times` are seconds for a token on named devices."""
    rows: list[tuple[Cell, ...]] = []
    for place, item in enumerate(served):
        rows.append(
            (
                item.batch,
                item.context,
                item.prefill.total().flops,
                item.decode.total().flops // item.batch,
                item.cache_bytes,
                item.decode.total().bytes,
                *(seconds[place] for seconds in times.values()),
            )
        )
    return Table(
        Text("Prefill, then one decoded token", "预填充，然后解码一个 token"),
        (
            Text("batch", "批大小"),
            Text("context", "上下文"),
            Text("prefill", "预填充"),
            Text("decode, each token", "解码，每 token"),
            Text("KV cache", "KV 缓存"),
            Text("bytes moved by a decode", "一次解码的访存"),
            *(Text(f"a decode on {name}", f"{name} 上一次解码") for name in times),
        ),
        tuple(rows),
        Text("counted with a cache of that length", "以该长度的缓存统计"),
        ("", "", "FLOP", "FLOP", "B", "B", *("s" for _ in times)),
    )
