"""Will it fit: a toy on paper, Llama-3-8B by arithmetic, and what must hold for any model."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from tests.cost.toys import ROUND, facts, toy
from torchstone.core.errors import UsageError
from torchstone.core.text import LANGS, Text
from torchstone.cost.counting.engine import run
from torchstone.cost.on_devices.fitting import fit
from torchstone.cost.on_devices.need import LABELS, Load, Need, need_of
from torchstone.cost.on_devices.plan import CHECKPOINTS, OPTIMIZERS, Plan
from torchstone.cost.records.ledger import Cost, Key, Memory, Tally
from torchstone.cost.records.units import stages_of, units_of
from torchstone.render import draw
from torchstone.render.style import Style


def need(plan: Plan, cost: Cost | None = None, **more: Any) -> Need:
    return fit(cost or toy(), ROUND, plan, suggest=False, **more).need


def test_one_device_on_paper() -> None:
    # embedding and head 800 parameters, each block 64 + 8; two bytes each
    assert need(Plan()) == Need(
        parameters=3488, gradients=3488, optimizer=8 * 1744, activations=2 * 960 + 1000
    )


def test_the_optimizers_differ_in_their_state_only() -> None:
    states = {name: need(Plan(optimizer=name)).optimizer for name in OPTIMIZERS}
    assert states == {
        "measured": 8 * 1744,  # no step was measured
        "sgd": 0,
        "sgd-momentum": 4 * 1744,
        "adamw": 8 * 1744,
        "adamw-mixed": 12 * 1744,
        # 2.03125 bytes each, rounded up in every unit: 1625, 146.25, 146.25, 1625
        "adamw-8bit": 1625 + 147 + 147 + 1625,
    }


def test_zero_on_paper() -> None:
    whole = {"activations": 2920}
    assert need(Plan(data=4)) == need(Plan())
    assert need(Plan(data=4, zero=1)) == Need(3488, 3488, 3488, **whole)
    # the gradients of the embedding are whole before they are scattered
    assert need(Plan(data=4, zero=2)) == Need(3488, 872, 3488, gathered=1600, **whole)
    assert need(Plan(data=4, zero=3)) == Need(872, 872, 3488, gathered=3200, **whole)
    assert need(Plan(data=1, zero=3)) == need(Plan())


def test_tensor_parallel_on_paper() -> None:
    # norms stay whole: 400 + 2 x (32 + 8) + 400 parameters
    found = need(Plan(tensor=2))
    assert (found.parameters, found.gradients, found.optimizer) == (1760, 1760, 7040)
    assert found.activations == 2 * (360 + 120) + 500
    assert need(Plan(tensor=2, sequence_parallel=False)).activations == 2 * (360 + 240) + 1000


def test_pipeline_on_paper() -> None:
    found = fit(toy(), ROUND, Plan(pipeline=2, micro_batches=4), suggest=False)
    # both stages hold 872 parameters; the first keeps two micro-batches of 960 in flight,
    # the last one micro-batch of 960 + 1000
    assert found.stage == 1
    assert found.need == Need(1744, 1744, 8 * 872, activations=1960)
    stages = stages_of(units_of(toy()), 2)
    plan = Plan(pipeline=2, micro_batches=4)
    assert need_of(stages[0], 0, plan, Load()).activations == 2 * 960
    assert need_of(stages[0], 0, replace(plan, micro_batches=1), Load()).activations == 960


def test_checkpointing_on_paper() -> None:
    full, selective = need(Plan(checkpoint="full")), need(Plan(checkpoint="selective"))
    assert (full.activations, full.recomputed) == (2 * 160 + 1000, 960 - 160)
    assert (selective.activations, selective.recomputed) == (2 * 560 + 1000, 400)


def test_experts_on_paper() -> None:
    cost = toy(moe=True)
    dense, experts = 3488, 2 * 768
    assert need(Plan(data=4), cost).parameters == dense + experts
    spread = need(Plan(data=4, expert=2), cost, experts_per_token=2)
    assert spread.parameters == dense + experts // 2
    # ZeRO shards experts over the two ranks that hold the same ones
    sharded = need(Plan(data=4, expert=2, zero=3), cost, experts_per_token=2)
    assert sharded.parameters == dense // 4 + experts // 4
    assert sharded.gathered == 2 * 1600
    # no two ranks hold the same expert: those are never gathered
    alone = need(Plan(data=4, expert=4, zero=3), cost, experts_per_token=2)
    assert alone.parameters == dense // 4 + experts // 4


def test_the_micro_batch_scales_activations_only() -> None:
    one, four = need(Plan(), batch=2), need(Plan(micro_batch=8), batch=2)
    assert four.activations == 4 * one.activations
    assert four.states == one.states


def test_gradients_in_another_format() -> None:
    assert need(Plan(gradient_itemsize=4)).gradients == 4 * 1744


def test_tied_weights_are_held_twice_by_a_pipeline() -> None:
    cost = toy()
    tied = {**cost.modules, "head": facts("head", "Linear", 0, 1000, shared=800)}
    cost = replace(cost, modules=tied)
    assert need(Plan(), cost).parameters == 3488 - 1600
    last = need_of(stages_of(units_of(cost), 2)[1], 1, Plan(pipeline=2), Load())
    assert last.parameters == 144 + 1600


def test_serving_needs_no_gradients() -> None:
    cost = replace(toy(), train=False, entries={}, memory=Memory(activations=500))
    found = need(Plan(tensor=2), cost, cache_bytes=4000, cache_heads=8, boundary_bytes=160)
    assert found == Need(parameters=1760, activations=250, cache=2000)


@pytest.mark.parametrize(
    ("heads", "tensor", "cache"),
    [
        (1, 8, 4800),  # a latent, or one head for all queries: every rank keeps it
        (8, 8, 600),
        (8, 16, 600),  # more ranks than heads: each keeps one whole head
        (8, 3, 1800),  # three heads on the fullest rank
    ],
)
def test_tensor_parallelism_divides_the_heads_of_a_cache(
    heads: int, tensor: int, cache: int
) -> None:
    cost = replace(toy(), train=False, entries={}, memory=Memory(activations=500))
    more = {"cache_bytes": 4800, "cache_heads": heads, "boundary_bytes": 160}
    assert need(Plan(tensor=tensor), cost, **more).cache == cache


def test_verdict_headroom_and_reserve() -> None:
    found = fit(toy(), ROUND, Plan(optimizer="sgd"))
    # 3488 + 3488 + 2920 = 9896 of 19,000 (95 % of 20,000)
    assert (found.fits, found.total_bytes, found.headroom_bytes) == (True, 9896, 9104)
    assert found.suggestion is None
    tight = fit(toy(), ROUND, Plan(), reserve=0.0)
    assert (tight.fits, tight.headroom_bytes) == (False, 20_000 - 23_848)
    assert "does not fit" in tight.text.en
    assert "放不进" in tight.text.zh


def test_the_smallest_change() -> None:
    # four devices: sharding the optimizer alone is enough, 13,384 bytes
    found = fit(toy(), ROUND, Plan(data=4))
    assert found.suggestion is not None
    assert found.suggestion.changed == ("zero",)
    assert found.suggestion.plan.zero == 1
    assert found.suggestion.total_bytes == 3488 + 3488 + 3488 + 2920
    assert "it would with zero=1" in found.text.en


def test_what_is_easier_to_change_comes_first() -> None:
    # selective checkpointing would do as well (23,448 bytes), and so would zero=2
    found = fit(toy(), replace(ROUND, memory_bytes=23_600), Plan(data=4), reserve=0.0)
    assert found.suggestion is not None
    assert (found.suggestion.changed, found.suggestion.plan.zero) == (("zero",), 1)
    alone = fit(toy(), replace(ROUND, memory_bytes=23_600), Plan(), reserve=0.0)
    assert alone.suggestion is not None
    assert alone.suggestion.plan.checkpoint == "selective"  # the one that computes less again
    assert alone.suggestion.total_bytes == 23_448


def test_one_setting_is_less_than_two() -> None:
    # zero=3 alone needs 11,352 bytes, with full checkpointing 10,552; tensor=4 needs 6,106
    found = fit(toy(), replace(ROUND, memory_bytes=11_000), Plan(data=4), reserve=0.0)
    assert found.suggestion is not None
    assert found.suggestion.changed == ("tensor",)
    assert found.suggestion.total_bytes == 6_106
    both = Plan(data=4, zero=3, checkpoint="full")
    assert fit(toy(), ROUND, both).total_bytes == 10_552


def test_a_larger_change_when_a_small_one_is_not_enough() -> None:
    small = replace(ROUND, memory_bytes=8_200)
    found = fit(toy(), small, Plan(data=4), reserve=0.0)
    assert found.suggestion is not None
    again = fit(toy(), small, found.suggestion.plan, reserve=0.0)
    assert again.fits
    assert again.total_bytes == found.suggestion.total_bytes
    assert found.suggestion.plan.world == 4
    # and no single setting would have done
    for plan in (
        *(Plan(data=4, zero=stage) for stage in range(4)),
        *(Plan(data=4, checkpoint=name) for name in CHECKPOINTS),
    ):
        assert not fit(toy(), small, plan, reserve=0.0, suggest=False).fits


def test_nothing_helps_one_device_that_is_too_small() -> None:
    found = fit(toy(), replace(ROUND, memory_bytes=1000), Plan())
    assert not found.fits
    assert found.suggestion is None


def test_the_global_batch_stays() -> None:
    small = replace(ROUND, memory_bytes=9_000, node_devices=1)
    found = fit(toy(), small, Plan(data=4, micro_batches=2), reserve=0.0)
    assert found.suggestion is not None
    plan = found.suggestion.plan
    assert plan.data * plan.micro_batches == 8


@pytest.mark.parametrize(
    ("plan", "more", "said"),
    [
        (Plan(data=2), {"world": 4}, "= 4 devices"),
        (Plan(pipeline=3), {}, "at most the 2 blocks"),
        (Plan(data=4, expert=2), {}, "without experts"),
        (Plan(tensor=0), {}, "plan tensor"),
        (Plan(), {"batch": 0}, "batch"),
        (Plan(), {"reserve": 1.0}, "reserve"),
        (Plan(), {"reserve": -0.1}, "reserve"),
        (Plan(), {"cache_bytes": -1}, "cache_bytes"),
    ],
)
def test_mistakes(plan: Plan, more: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fit(toy(), ROUND, plan, **more)


def test_expert_mistakes() -> None:
    with pytest.raises(UsageError, match="divisor of the number of experts"):
        fit(toy(moe=True), ROUND, Plan(data=5, expert=5), experts_per_token=2)
    with pytest.raises(UsageError, match="experts_per_token"):
        fit(toy(moe=True), ROUND, Plan(data=2, expert=2))


def test_an_unknown_boundary_is_asked_for() -> None:
    blind = replace(toy(), entries={})
    assert fit(blind, ROUND, Plan(), suggest=False).total_bytes == 23_848
    with pytest.raises(UsageError, match="boundary_bytes"):
        fit(blind, ROUND, Plan(checkpoint="full"))
    assert need(Plan(checkpoint="full"), blind, boundary_bytes=160).activations == 1320


def test_tables_in_both_languages() -> None:
    found = fit(toy(), ROUND, Plan(data=8, tensor=2, zero=3))
    for lang in LANGS:
        for table in (found.memory_table(), found.traffic_table()):
            assert draw.html(table, Style(lang=lang))
    assert any("参数" in row for row in draw.text(found.memory_table(), Style(lang="zh")))
    assert found.memory_table().rows[-2] == (Text("at most", "至多"), found.total_bytes)


def test_the_measured_state_is_taken_where_there_is_one() -> None:
    cost = toy()
    stepped = replace(
        cost,
        entries={**cost.entries, Key("", "optimizer", "aten.add_", "float32"): Tally(calls=1)},
        memory=replace(cost.memory, optimizer=2 * 1744),
    )
    assert fit(stepped, ROUND).need.optimizer == 2 * 1744
    assert fit(stepped, ROUND, Plan(optimizer="adamw")).need.optimizer == 8 * 1744


@pytest.fixture(scope="module")
def llama() -> Cost:
    config = transformers.LlamaConfig(
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128256,
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    ids = torch.zeros(1, 2048, dtype=torch.long, device="meta")
    return run(model, {"input_ids": ids, "labels": ids}, train=True)


def test_llama_3_8b_on_eight_h100(llama: Cost) -> None:
    plan = Plan(data=8, zero=3, optimizer="adamw-mixed")
    found = fit(llama, "h100", plan, world=8)
    parameters = 8_030_261_248
    assert found.need.parameters == 2 * parameters // 8 == 2_007_565_312
    assert found.need.gradients == 2 * parameters // 8
    assert found.need.optimizer == 12 * parameters // 8 == 12_045_391_872
    # the largest unit is the embedding: its parameters, and its gradients
    assert found.need.gathered == 2 * 2 * 128256 * 4096
    assert found.need.activations == llama.memory.activations
    assert found.fits
    assert not fit(llama, "h100", replace(plan, zero=0), suggest=False).fits
    # reduce-scatter once and all-gather twice, 7/8 of the parameters each
    assert found.sent_bytes == 3 * 7 * 2 * parameters // 8
    assert found.communication_seconds == pytest.approx(found.sent_bytes / 450e9)


def test_what_llama_hands_from_block_to_block(llama: Cost) -> None:
    blocks = [unit for unit in units_of(llama) if unit.block]
    assert len(blocks) == 32
    assert {unit.boundary for unit in blocks} == {2048 * 4096 * 2}
    assert {unit.parameters for unit in blocks} == {2 * 218_112_000}


@st.composite
def models(draw: st.DrawFn) -> Cost:
    layers = draw(st.integers(2, 6))
    width, table = draw(st.integers(1, 10**6)), draw(st.integers(0, 10**6))
    experts = draw(st.sampled_from([0, 8]))
    kept = draw(st.integers(0, 10**6))
    modules = [facts("", "Model"), facts("embed", "Embedding", min(table, width))]
    for index in range(layers):
        path = f"layers.{index}"
        modules += [
            facts(path, "Block", activations=kept),
            facts(f"{path}.attn", "Attention", width, activations=2 * kept),
            facts(f"{path}.norm", "LayerNorm", 2, activations=kept),
            facts(f"{path}.experts", "Experts", experts * width),
        ]
    modules.append(facts("head", "Linear", min(table, width), activations=kept))
    return Cost({}, {item.path: item for item in modules}, train=True)


degrees = st.sampled_from([1, 2, 4, 8])
optimizers = st.sampled_from(sorted(OPTIMIZERS))


@given(models(), st.integers(2, 64), optimizers)
def test_more_zero_never_needs_more(cost: Cost, data: int, optimizer: str) -> None:
    plans = [Plan(data=data, zero=stage, optimizer=optimizer) for stage in range(4)]
    needs = [need(plan, cost) for plan in plans]
    for less, more in itertools.pairwise(needs):
        assert more.states <= less.states
        # with two or more equal blocks the unit that is gathered is at most half of the model
        assert more.total <= less.total + 64 * 3  # shares are rounded up


@given(models(), degrees, degrees, st.sampled_from([1, 2]), st.integers(0, 3), optimizers)
def test_what_all_devices_hold_is_the_whole(
    cost: Cost, data: int, tensor: int, pipeline: int, zero: int, optimizer: str
) -> None:
    plan = Plan(data, tensor, pipeline, zero=zero, optimizer=optimizer)
    needs = [
        need_of(stage, index, plan, Load())
        for index, stage in enumerate(stages_of(units_of(cost), pipeline))
    ]
    single = need_of(units_of(cost), 0, Plan(optimizer=optimizer), Load())
    norms = sum(unit.whole_bytes for unit in units_of(cost))
    for name, sharded in (("parameters", zero >= 3), ("gradients", zero >= 2)):
        whole = getattr(single, name)
        held = sum(getattr(part, name) for part in needs) * tensor
        held *= data if sharded else 1
        # nothing is lost; what is more are norms on every tensor rank, and shares rounded up
        units = len(units_of(cost))
        assert whole <= held <= whole + norms * (tensor - 1) + (3 * units + 2) * tensor * data


@given(models(), st.sampled_from(CHECKPOINTS), st.integers(1, 9), st.integers(1, 9))
def test_checkpointing_never_needs_more(
    cost: Cost, checkpoint: str, batch: int, micro: int
) -> None:
    plan = Plan(micro_batch=micro, checkpoint=checkpoint)
    found = need(plan, cost, batch=batch, boundary_bytes=1)
    plain = need(replace(plan, checkpoint="none"), cost, batch=batch)
    assert found.total <= plain.total


@given(models(), degrees)
def test_more_tensor_ranks_never_need_more(cost: Cost, tensor: int) -> None:
    assert (
        need(Plan(tensor=2 * tensor), cost, boundary_bytes=1).total
        <= need(Plan(tensor=tensor), cost, boundary_bytes=1).total
    )


def test_labels_name_every_part() -> None:
    assert set(LABELS) == set(Need.__dataclass_fields__)
