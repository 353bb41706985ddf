"""Costs made by hand, small enough to be checked on paper."""

from __future__ import annotations

from torchstone.cost.records.ledger import (
    BACKWARD,
    FORWARD,
    RECOMPUTE,
    Cost,
    Key,
    Memory,
    ModuleFacts,
    Tally,
)
from torchstone.runtime.devices import Device

ROUND = Device(
    name="round",
    title="Round numbers",
    memory_bytes=20_000,
    memory_bytes_per_second=100.0,
    vector_flops_per_second=10.0,
    source="made for a test",
    peaks={"float32": 50.0, "tf32": 200.0, "bfloat16": 1000.0},
    link_bytes_per_second=10.0,
    network_bytes_per_second=1.0,
    node_devices=4,
)
"""Rates that divide in the head: 1000 FLOP/s, 100 bytes/s."""


def facts(path: str, kind: str, count: int = 0, activations: int = 0, **more: int) -> ModuleFacts:
    """A module with `count` trainable parameters of two bytes."""
    sizes = {"parameters": count, "parameter_bytes": 2 * count, "trainable": count} | more
    return ModuleFacts(path, kind, activation_bytes=activations, **sizes)


def toy(layers: int = 2, moe: bool = False) -> Cost:
    """Embedding and head of 800 parameters around blocks of 72; activations 960 for each block."""
    modules = [facts("", "Toy"), facts("embed", "Embedding", 800)]
    entries: dict[Key, Tally] = {}
    for index in range(layers):
        path = f"layers.{index}"
        modules += [
            facts(path, "Block", activations=80),
            facts(f"{path}.attn", "ToyAttention", activations=400),
            facts(f"{path}.linear", "Linear", 64, activations=320),
            facts(f"{path}.norm", "RMSNorm", 8, activations=160),
        ]
        if moe:
            modules.append(facts(f"{path}.experts", "ToyExperts", 4 * 96))
        entries[Key(path, FORWARD, "aten.add", "bfloat16")] = Tally(
            calls=2, vector_flops=160, bytes_read=640, bytes_written=320
        )
        entries[Key(f"{path}.linear", FORWARD, "aten.mm", "bfloat16")] = Tally(
            calls=1, flops=1280, bytes_read=288, bytes_written=160
        )
        entries[Key(f"{path}.linear", BACKWARD, "aten.mm", "bfloat16")] = Tally(
            calls=2, flops=2560, bytes_read=576, bytes_written=288
        )
    modules.append(facts("head", "Linear", 800, activations=1000))
    return Cost(
        entries=entries,
        modules={item.path: item for item in modules},
        memory=Memory(activations=960 * layers + 1000),
        train=True,
    )


def step() -> Cost:
    """One matrix product in each phase, attention that a kernel forms twice, and an optimizer."""
    entries = {
        Key("a", FORWARD, "aten.mm", "bfloat16"): Tally(1, flops=1000, bytes_read=10),
        Key("b", FORWARD, "aten._scaled_dot_product_flash_attention", "bfloat16"): Tally(
            1, flops=600, bytes_read=200, causal_flops=200
        ),
        Key("a", BACKWARD, "aten.mm", "bfloat16"): Tally(2, flops=2000, bytes_read=30),
        Key("b", BACKWARD, "aten._scaled_dot_product_flash_attention_backward", "bfloat16"): Tally(
            1, flops=1200, extra_flops=300, bytes_read=300, causal_flops=400
        ),
        Key("a", RECOMPUTE, "aten.mm", "bfloat16"): Tally(1, flops=1000, bytes_read=10),
        Key("a", FORWARD, "aten.relu", "bfloat16"): Tally(
            1, vector_flops=50, bytes_read=100, bytes_written=100
        ),
        Key("", "optimizer", "aten._foreach_add", "float32"): Tally(1, vector_flops=70),
    }
    modules = {path: ModuleFacts(path, "Thing") for path in ("", "a", "b")}
    return Cost(entries, modules, train=True)
