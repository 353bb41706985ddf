"""LoRA adapters and packed weights, beside arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from torchstone.core.errors import TorchstoneError, UsageError
from torchstone.cost import measure_cost
from torchstone.cost.fine_tuning import PACKINGS, Lora, change_model, lora_from
from torchstone.cost.options import CostOptions
from torchstone.cost.survey import survey

LLAMA = "hf:llama?num_hidden_layers=2&hidden_size=64&intermediate_size=128&vocab_size=256"
SMALL = CostOptions(target=f"{LLAMA}&num_attention_heads=4&num_key_value_heads=2", train=True, seq="128")  # fmt: skip


ROWS = torch.empty(4, 64, dtype=torch.bfloat16, device="meta")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(64, 256, bias=False), nn.Linear(256, 64, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.head = nn.ModuleList([Block(), Block()]), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def changed(lora: Lora | None, quant: str = "") -> nn.Module:
    with torch.device("meta"):
        model = Net().to(torch.bfloat16)
    change_model(model, lora, PACKINGS[quant] if quant else None)
    return model


def test_parameters_and_bytes_of_adapters_and_packed_weights() -> None:
    report = measure_cost(changed(Lora(8), "nf4"), ROWS, train=True)
    weights, head, adapters = 4 * 64 * 256, 64 * 10 + 10, 4 * 8 * (64 + 256)
    assert report.total["params"] == weights + head + adapters
    assert report.total["trainable_params"] == adapters
    memory = report.cost.memory
    assert memory.parameters == weights // 2 + head * 2 + adapters * 4
    assert memory.gradients == adapters * 4
    assert memory.optimizer >= adapters * 8
    assert memory.buffers == 4 * 260  # 256 blocks of 64: a byte each, and 4 more for all


def test_products_are_those_of_the_layers_and_the_adapters() -> None:
    """The weights that are frozen take no product in the backward, the adapters take two."""
    rows, frozen, thin = 4, 4 * 64 * 256, 4 * 8 * (64 + 256)
    report = measure_cost(changed(Lora(8), "int8"), ROWS, train=True)
    head = 64 * 10
    assert report.total["forward_flops"] == 2 * rows * (frozen + thin + head)
    inner = frozen - 64 * 256  # nothing asks for the gradient of the input
    first = 8 * 64
    assert report.total["backward_flops"] == 2 * rows * (inner + head + 2 * thin - first)


def test_equal_layers_are_counted_as_if_each_had_run() -> None:
    fast = survey(replace(SMALL, lora="r=4", quant="nf4"))
    slow = survey(replace(SMALL, lora="r=4", quant="nf4", no_replay=True))
    assert fast.total == slow.total


@pytest.mark.parametrize(("text", "wanted"), [
    ("r=16", Lora(16)), ("8", Lora(8)), ("r=8,q_proj,v_proj", Lora(8, ("q_proj", "v_proj"))),
    ("r=4,targets=up+down", Lora(4, ("up", "down"))),
])  # fmt: skip
def test_ranks_and_layers(text: str, wanted: Lora) -> None:
    assert lora_from(text) == wanted


@pytest.mark.parametrize("text", ["", "r=0", "r=x", "q_proj", "r=16,a-b", "r=99999999999"])
def test_what_is_not_a_rank(text: str) -> None:
    with pytest.raises(UsageError, match="--lora r=16"):
        lora_from(text)


def test_layers_that_do_not_exist_and_packed_weights_that_should_learn() -> None:
    with pytest.raises(TorchstoneError, match="choose from down, up"):
        changed(Lora(8, ("middle",)))
    with pytest.raises(UsageError, match="add --lora r=16"):
        survey(replace(SMALL, quant="nf4"))


def test_what_makes_it_fit_is_counted(tmp_path) -> None:
    """A device that holds neither the optimizer's state nor the activations of full training."""
    table = tmp_path / "devices.toml"
    full = survey(SMALL).cost.memory.later_peak
    tuned = survey(replace(SMALL, lora="r=16")).cost.memory.later_peak
    assert tuned < full
    size = int((tuned + full) / 2 / 0.95)
    table.write_text(
        f'[small]\ntitle = "Small"\nmemory_bytes = {size}\nmemory_bytes_per_second = 1e12\n'
        'vector_flops_per_second = 1e12\nsource = "made up"\n[small.peaks]\nfloat32 = 1e12\nbfloat16 = 1e12\n'
    )
    report = survey(replace(SMALL, devices=str(table), device="small"))
    assert report.answer is not None
    assert "fits with --" in report.answer.lines[0].en
    assert "即可放下" in report.answer.lines[0].zh
