"""Every counter against a count by hand, and no operator of common models without a counter."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from torchstone.core.registry import names_in
from torchstone.cost import counters as package
from torchstone.cost.counters import Count, Example, Family, counters
from torchstone.cost.counters._probe import Probe, probe
from torchstone.cost.counters._sizes import broadcast, size_bytes
from torchstone.cost.counters.attention import BOTTOM_RIGHT, TOP_LEFT, seen_pairs
from torchstone.cost.counters.movement import FREE

NOT_ALWAYS_LOADED = {"transformers.grouped_mm_fallback", "prim.device", "prim.layout"}


def families() -> Iterator[Family]:
    for name in names_in(package.__name__):
        yield importlib.import_module(f"{package.__name__}.{name}").FAMILY


EXAMPLES = [
    pytest.param(example, id=f"{family.name}-{number}")
    for family in families()
    for number, example in enumerate(family.examples)
]


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_what_was_counted_by_hand(example: Example) -> None:
    seen = probe(example.call)
    assert not seen.uncounted
    expected = {name: getattr(example, name) for name in Count._fields}
    expected = {name: value for name, value in expected.items() if value is not None}
    assert {name: getattr(seen.total, name) for name in expected} == expected, example.why


def test_every_family_has_examples_in_words() -> None:
    for family in families():
        assert len(family.examples) >= (1 if family.name == "higher_order" else 2), family.name
        assert all(example.why for example in family.examples), family.name


def test_a_file_is_named_after_its_family() -> None:
    assert [family.name for family in families()] == names_in(package.__name__)


def test_all_operators_named_exist() -> None:
    assert [name for name in sorted(set(counters()) | FREE) if not exists(name)] == []


def exists(name: str) -> bool:
    namespace, _, operator = name.rpartition(".")
    if name in NOT_ALWAYS_LOADED:
        return True
    return hasattr(getattr(torch.ops, namespace or "higher_order"), operator)


def test_free_operators_have_no_counter() -> None:
    assert not FREE & set(counters())


def step(model: nn.Module, run: Callable[[], torch.Tensor]) -> Probe:
    """Forward, backward and one step of AdamW under the probe."""
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    seen = Probe()
    with seen:
        run().backward()
        optimizer.step()
        optimizer.zero_grad()
    return seen


def linear_flops(model: nn.Module) -> int:
    return 2 * sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Linear))


def test_transformer_has_no_uncounted_operator() -> None:
    model = nn.Transformer(16, 2, 1, 1, 32, batch_first=True, device="meta")
    inputs = [torch.empty(2, 5, 16, device="meta", requires_grad=True) for _ in range(2)]
    seen = step(model, lambda: model(*inputs).sum())
    assert seen.uncounted == set()
    # three attentions with four projections of 16 x 16 each, two pairs of 16 x 32
    projections = 2 * 10 * (3 * 4 * 16 * 16 + 2 * 2 * 16 * 32)
    attention = 3 * 2 * 2 * 2 * 5 * 5 * (8 + 8)
    assert seen.total.flops == 3 * (projections + attention)


def test_lstm_costs_the_same_on_both_devices() -> None:
    def run(device: str) -> Probe:
        model = nn.LSTM(6, 8, num_layers=2, device=device)
        given = torch.zeros(5, 3, 6, device=device, requires_grad=True)
        return step(model, lambda: model(given)[0].sum())

    on_meta, on_cpu = run("meta"), run("cpu")
    assert on_meta.uncounted == on_cpu.uncounted == set()
    assert on_cpu.total.flops == 3 * 2 * 15 * (32 * 6 + 32 * 8 + 2 * 32 * 8)
    assert on_cpu.calls["aten.mkldnn_rnn_layer"] == 2


def test_convolutional_net_has_no_uncounted_operator() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8), nn.GroupNorm(2, 8), nn.SiLU(), nn.Upsample(scale_factor=2),
        nn.ConvTranspose2d(8, 4, 2, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Dropout(0.1), nn.Linear(4, 10),
    ).to("meta")  # fmt: skip
    given = torch.empty(2, 3, 8, 8, device="meta")
    target = torch.empty(2, dtype=torch.int64, device="meta")
    seen = step(model, lambda: functional.cross_entropy(model(given), target))
    assert seen.uncounted == set()
    first = 2 * (2 * 8 * 64) * 27
    depthwise = 2 * (2 * 8 * 4) * 9
    transposed = 2 * (2 * 8 * 16) * 4 * 4
    # the first layer's input needs no gradient
    assert seen.total.flops == 2 * first + 3 * (depthwise + transposed + 2 * 2 * 4 * 10)


def test_small_llama_has_no_uncounted_operator() -> None:
    config = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=100,
    )  # fmt: skip
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
        ids = torch.zeros(2, 8, dtype=torch.int64)
    seen = step(model, lambda: model(input_ids=ids, labels=ids).loss)
    assert seen.uncounted == set()
    tokens, heads, size = 16, 4, 8
    attention = 2 * 2 * 2 * heads * 8 * 8 * (size + size)
    assert seen.total.flops == 3 * (tokens * linear_flops(model) + attention)


def test_inference_mode_counts_the_same() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to("meta")
    given = torch.empty(2, 3, 8, device="meta")
    with torch.inference_mode():
        whole = probe(lambda: model(given))
    with torch.no_grad():
        parts = probe(lambda: model(given))
    assert whole.uncounted == set()
    assert whole.total.flops == parts.total.flops == 2 * 6 * (8 * 16 + 16 * 4)
    assert whole.total.vector == parts.total.vector


def test_fast_path_of_the_encoder_layer() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    given = torch.zeros(2, 5, 16)
    with torch.no_grad():
        fast = probe(lambda: layer(given))
    slow = probe(lambda: layer(given.requires_grad_()))
    assert fast.calls["aten._transformer_encoder_layer_fwd"] == 1
    assert fast.uncounted == slow.uncounted == set()
    assert fast.total.flops == slow.total.flops


def attention_step(device: str, causal: bool) -> Probe:
    tensors = [torch.zeros(2, 4, 16, 8, device=device, requires_grad=True) for _ in range(3)]
    seen = Probe()
    with seen:
        functional.scaled_dot_product_attention(*tensors, is_causal=causal).sum().backward()
    return seen


def test_attention_backward_is_twice_the_forward_and_flash_does_extra() -> None:
    on_cpu, on_meta = attention_step("cpu", causal=False), attention_step("meta", causal=False)
    assert on_cpu.uncounted == on_meta.uncounted == set()
    assert on_cpu.total.flops == on_meta.total.flops == 3 * 65536
    assert on_cpu.total.extra == 2 * 2 * 4 * 16 * 16 * 8
    assert on_cpu.total.causal == 0


def test_causal_part_of_attention_forward_and_backward() -> None:
    seen = attention_step("cpu", causal=True)
    assert seen.total.flops == 3 * 65536
    assert seen.total.causal == 3 * (2 * 2 * 4 * (16 * 15 // 2) * 16)


@pytest.mark.parametrize("queries", range(6))
@pytest.mark.parametrize("keys", range(6))
@pytest.mark.parametrize("corner", [TOP_LEFT, BOTTOM_RIGHT, ""])
def test_pairs_of_a_causal_mask(queries: int, keys: int, corner: str) -> None:
    mask = torch.ones(queries, keys)
    if corner:
        mask = mask.tril(keys - queries if corner == BOTTOM_RIGHT else 0)
    assert seen_pairs(queries, keys, corner) == int(mask.sum())


def flash(starts: list[int], causal: bool, device: str = "cpu") -> Count:
    """The counter alone: the kernel itself runs on no CPU."""
    tokens = torch.empty(12, 2, 8, device="meta")
    places = torch.tensor(starts, device=device)
    counter = counters()["aten._flash_attention_forward"][1]
    return counter((tokens, tokens, tokens, places, places, 8, 8, 0.0, causal, False), {}, None)


def test_sequences_of_unequal_length() -> None:
    assert flash([0, 4, 12], causal=False).flops == 2 * 2 * (4 * 4 + 8 * 8) * 16
    assert flash([0, 4, 12], causal=True).causal == 2 * 2 * (4 * 3 // 2 + 8 * 7 // 2) * 16
    assert flash([0, 4, 12], causal=False, device="meta").flops == 2 * 2 * 2 * 36 * 16


def test_grouped_query_attention_is_counted_by_query_heads() -> None:
    query, key = torch.zeros(1, 4, 6, 8), torch.zeros(1, 2, 6, 8)
    seen = probe(lambda: functional.scaled_dot_product_attention(query, key, key, enable_gqa=True))
    assert seen.uncounted == set()
    assert seen.total.flops == 2 * 4 * 36 * 16


def test_convolution_backward_honours_the_mask() -> None:
    given, weight = torch.empty(1, 4, 5, 5, device="meta"), torch.empty(8, 4, 3, 3, device="meta")
    grad = torch.empty(1, 8, 3, 3, device="meta")
    one = 2 * grad.numel() * 36

    def run(mask: list[bool]) -> Count:
        return probe(
            lambda: torch.ops.aten.convolution_backward(
                grad, given, weight, [8], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask
            )
        ).total

    assert run([True, True, True])[:2] == (2 * one, grad.numel())
    assert run([False, True, False])[:2] == (one, 0)
    assert run([False, True, False]).read == size_bytes([grad, given])
    assert run([True, False, False]).read == size_bytes([grad, weight])


def test_an_unknown_operator_is_reported() -> None:
    library = torch.library.Library("torchstone_test", "FRAGMENT")
    library.define("mystery(Tensor x) -> Tensor")
    library.impl("mystery", lambda x: x.clone(), "CPU")
    seen = probe(lambda: torch.ops.torchstone_test.mystery(torch.zeros(3)))
    assert seen.uncounted == {"torchstone_test.mystery"}


def test_expanded_dimensions_are_in_memory_once() -> None:
    assert size_bytes(torch.empty(1, 8, device="meta").expand(1000, 8)) == 32
    assert size_bytes(torch.empty(0, 8)) == 0
    assert size_bytes([torch.empty(2), None, {"a": torch.empty(3, dtype=torch.int8)}]) == 11


@pytest.mark.parametrize(
    "shapes", [[(2, 1), (3,)], [(1,), (1,)], [(), (4,)], [(0, 1), (1, 5)], [(2, 3, 1), (1, 4)]]
)
def test_broadcast(shapes: Any) -> None:
    assert broadcast(*shapes) == torch.broadcast_shapes(*shapes).numel()
