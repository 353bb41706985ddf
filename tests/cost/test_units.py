"""Blocks, experts and stages are read off module paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost.toys import facts, toy
from torchstone.core.errors import UsageError
from torchstone.cost.records.ledger import FORWARD, Cost, Key, Tally
from torchstone.cost.records.units import block_of, is_expert, stages_of, units_of


@pytest.mark.parametrize(
    ("path", "block"),
    [
        ("model.layers.5.mlp.experts.3.up", "model.layers.5"),
        ("0", "0"),
        ("lm_head", ""),
        ("", ""),
        ("layer1.0.conv1", "layer1.0"),
    ],
)
def test_a_block_is_the_first_numbered_module(path: str, block: str) -> None:
    assert block_of(path) == block


@pytest.mark.parametrize(
    ("path", "kind", "expert"),
    [
        ("layers.3.mlp.experts", "MixtralExperts", True),
        ("layers.3.block_sparse_moe.experts.0.w1", "Linear", True),
        ("layers.3.feed", "GptOssExperts", True),
        ("layers.3.mlp.shared_experts.up_proj", "Linear", False),
        ("layers.3.mlp.shared_expert", "MLP", False),
        ("layers.3.mlp", "MLP", False),
    ],
)
def test_experts(path: str, kind: str, expert: bool) -> None:
    assert is_expert(path, kind) is expert


def test_units_of_the_toy() -> None:
    units = {unit.path: unit for unit in units_of(toy(moe=True))}
    assert list(units) == ["", "embed", "layers.0", "layers.1", "head"]
    block = units["layers.0"]
    assert (block.split_bytes, block.whole_bytes, block.expert_bytes) == (128, 16, 768)
    assert (block.split_trainable, block.whole_trainable, block.expert_trainable) == (64, 8, 384)
    assert (block.split_activations, block.whole_activations) == (720, 240)
    assert block.attention_activations == 400
    assert block.boundary == 160
    assert units["head"].boundary == 0
    assert sum(unit.parameters for unit in units.values()) == 2 * (800 + 72 + 384 + 72 + 384 + 800)


def test_a_block_without_own_operators_hands_on_what_its_last_one_writes() -> None:
    modules = {path: facts(path, "Linear", 4) for path in ("0", "1")}
    entries = {
        Key("0.a", FORWARD, "aten.mm", "float32"): Tally(1, bytes_written=10),
        Key("0.b", FORWARD, "aten.mm", "float32"): Tally(2, bytes_written=60),
        Key("1", FORWARD, "aten.mm", "float32"): Tally(1, bytes_written=70),
    }
    assert [unit.boundary for unit in units_of(Cost(entries, modules))] == [30, 70]
    assert [unit.boundary for unit in units_of(Cost(entries, modules), 5)] == [5, 5]


def test_frozen_parameters_have_no_gradients() -> None:
    modules = {"a": facts("a", "Linear", 100, trainable=25)}
    (unit,) = units_of(Cost({}, modules))
    assert (unit.split_bytes, unit.split_gradients, unit.split_trainable) == (200, 50, 25)


def test_stages() -> None:
    stages = stages_of(units_of(toy(layers=4)), 2)
    assert [[unit.path for unit in stage] for stage in stages] == [
        ["embed", "layers.0", "layers.1"],
        ["", "layers.2", "layers.3", "head"],
    ]


def test_uneven_stages() -> None:
    stages = stages_of(units_of(toy(layers=5)), 3)
    assert [sum(unit.block for unit in stage) for stage in stages] == [2, 2, 1]


def test_more_stages_than_blocks() -> None:
    with pytest.raises(UsageError, match="at most the 2 blocks"):
        stages_of(units_of(toy()), 3)


@given(st.integers(1, 12), st.integers(1, 12))
def test_stages_hold_every_unit_once(layers: int, pipeline: int) -> None:
    units = units_of(toy(layers))
    if pipeline > layers:
        return
    stages = stages_of(units, pipeline)
    assert sorted(unit.path for stage in stages for unit in stage) == sorted(
        unit.path for unit in units
    )
    counts = [sum(unit.block for unit in stage) for stage in stages]
    assert max(counts) - min(counts) <= 1
