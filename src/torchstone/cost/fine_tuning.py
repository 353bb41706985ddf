"""LoRA adapters and quantised weights, put into a model on the meta device.

Only linear layers inside the numbered blocks of a model are changed, as PEFT's `all-linear` and
bitsandbytes do: embeddings and the output head stay. What matters here is what is kept, computed and
moved; the values of a model on meta do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from torchstone.core.errors import UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.cost.records.units import block_of


@dataclass(frozen=True, slots=True)
class Packing:
    """How the weights of a linear layer are stored."""

    name: str
    bits: int
    said: Text
    block: int = 0
    """Values that share a scale; 0: those of a row."""
    scale_bytes: float = 4.0


_BLOCK = 64
"""Of bitsandbytes; with double quantisation a block costs 1 byte and every 256th block 4 more."""
PACKINGS = {
    item.name: item
    for item in (
        Packing("nf4", 4, Text("4 bits, blocks of 64, double quantisation", "4 位，64 个一组，双重量化"), _BLOCK, 1 + 4 / 256),
        Packing("int4", 4, Text("4 bits, groups of 128 with a scale and a zero point (GPTQ, AWQ)", "4 位，128 个一组，含缩放与零点（GPTQ、AWQ）"), 128, 2.5),
        Packing("int8", 8, Text("8 bits, a scale for each row (LLM.int8)", "8 位，每行一个缩放（LLM.int8）")),
        Packing("fp8", 8, Text("8 bits, a scale for each row", "8 位，每行一个缩放")),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lora:
    """What `--lora` asks for."""

    rank: int
    targets: tuple[str, ...] = ()
    """Last parts of the names of layers; empty: all linear layers of the blocks."""


def lora_from(text: str) -> Lora:
    """`r=16`, `16`, or `r=16,q_proj,v_proj`."""
    rank, targets = 0, []
    for part in filter(None, (item.strip() for item in text.split(","))):
        key, equals, value = part.partition("=")
        number = value if equals else key
        if (key == "r" or not equals) and number.isascii() and number.isdecimal():
            rank = int(number)
        elif equals and key == "targets":
            targets += value.split("+")
        elif not equals and part.isidentifier():
            targets.append(part)
        else:
            raise _not_lora(text)
    if not 1 <= rank <= _LARGEST_RANK:
        raise _not_lora(text)
    return Lora(rank, tuple(targets))


_LARGEST_RANK = 1 << 16


def _not_lora(text: str) -> UsageError:
    return UsageError(
        "cost: --lora", repr(text[:60]),
        Text("a rank, and the names of layers if not all: r=16 or r=16,q_proj,v_proj",
             "秩，以及（若非全部）层名：r=16 或 r=16,q_proj,v_proj"),
        Text("write --lora r=16", "请写 --lora r=16"),
    )  # fmt: skip


def packing_from(name: str) -> Packing:
    if name not in PACKINGS:
        raise unknown("cost: --quant", name, list(PACKINGS))
    return PACKINGS[name]


class PackedLinear(nn.Module):
    """A linear layer whose weights are stored in fewer bits and unpacked for every product."""

    def __init__(self, layer: nn.Linear, packing: Packing) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.packing = packing
        count = layer.weight.numel()
        stored = torch.empty(ceil(count * packing.bits / 8), dtype=torch.uint8, device="meta")
        self.weight = nn.Parameter(stored, requires_grad=False)
        self.values_stored = {"weight": count}
        """Parameters that a packed one stands for, by its name."""
        blocks = ceil(count / packing.block) if packing.block else layer.out_features
        scales = torch.empty(ceil(blocks * packing.scale_bytes), dtype=torch.uint8, device="meta")
        self.register_buffer("scales", scales)
        self.has_bias = isinstance(layer.bias, nn.Parameter)
        self.bias = layer.bias

    def unpacked(self, dtype: torch.dtype) -> torch.Tensor:
        """Read once, written once in the format of the product."""
        per_byte = 8 // self.packing.bits
        whole = self.weight.new_empty((self.out_features, self.in_features), dtype=dtype)
        if whole.numel() == self.weight.numel() * per_byte:
            whole.view(-1, per_byte).copy_(self.weight.unsqueeze(-1))
        return whole

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = _PackedProduct.apply(x, self)  # type: ignore[no-untyped-call]
        return made + self.bias if self.has_bias else made


class _PackedProduct(torch.autograd.Function):
    """Keeps nothing for the backward but the packed weights, which are there anyway."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, layer: PackedLinear) -> torch.Tensor:
        ctx.layer = layer
        return F.linear(x, layer.unpacked(x.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient @ ctx.layer.unpacked(gradient.dtype), None


def _empty(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float32, device="meta")


class LoraLinear(nn.Module):
    """A frozen layer and a product of two thin matrices beside it, kept in float32 as PEFT does."""

    def __init__(self, base: nn.Linear | PackedLinear, rank: int) -> None:
        super().__init__()
        self.base = base
        self.lora_a = nn.Parameter(_empty(rank, base.in_features))
        self.lora_b = nn.Parameter(_empty(base.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        thin = F.linear(x, self.lora_a.to(x.dtype))
        made: torch.Tensor = self.base(x) + F.linear(thin, self.lora_b.to(x.dtype))
        return made


@dataclass(frozen=True, slots=True)
class Changed:
    """What was changed in a model."""

    adapted: tuple[str, ...] = ()
    packed: int = 0
    left: int = 0
    """Parameters of the blocks that stay as they are: norms, fused experts."""


def change_model(model: nn.Module, lora: Lora | None, packing: Packing | None) -> Changed:
    """Pack the linear layers of the blocks, freeze the model and add the adapters."""
    layers = list(_linear_layers(model))
    if not layers:
        raise UsageError(
            "cost: --lora, --quant", type(model).__name__,
            Text("a model with linear layers", "含线性层的模型"),
            Text("leave the option out", "请去掉该选项"),
        )  # fmt: skip
    if lora is not None:
        model.requires_grad_(False)
    adapted: list[str] = []
    packed = 0
    for parent, name, path, layer in layers:
        new: nn.Linear | PackedLinear = layer
        if packing is not None:
            new, packed = PackedLinear(layer, packing), packed + layer.weight.numel()
        if lora is not None and (not lora.targets or name in lora.targets):
            adapted.append(path)
            setattr(parent, name, LoraLinear(new, lora.rank))
        elif new is not layer:
            setattr(parent, name, new)
    if lora is not None and not adapted:
        names = sorted({name for _, name, _, _ in layers})
        raise unknown("cost: --lora", ", ".join(lora.targets), names)
    return Changed(tuple(adapted), packed, _left_in_blocks(model))


def _linear_layers(model: nn.Module) -> Iterator[tuple[nn.Module, str, str, nn.Linear]]:
    """Parent, own name, path and layer; of the blocks, or all but the last where there are none."""
    found = [
        (parent, name, f"{path}.{name}" if path else name, child)
        for path, parent in model.named_modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear
    ]
    inside = [item for item in found if block_of(item[2])]
    yield from inside or found[:-1] or found


def _left_in_blocks(model: nn.Module) -> int:
    return sum(
        parameter.numel()
        for path, parameter in model.named_parameters()
        if block_of(path) and not parameter.requires_grad and parameter.dtype is not torch.uint8
    )
