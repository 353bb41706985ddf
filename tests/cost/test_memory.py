"""Peak memory is that of torch's own tracker where both run the same kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils.checkpoint import checkpoint
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from torchstone.cost.engine import run


def adamw(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, foreach=True)


def llama() -> nn.Module:
    config = LlamaConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=6, num_attention_heads=8,
        num_key_value_heads=4, vocab_size=1000,
    )  # fmt: skip
    return LlamaForCausalLM(config).to(torch.bfloat16)


def gpt2() -> nn.Module:
    return GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=96, n_head=4, vocab_size=500))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10),
    )  # fmt: skip


def tracked(model: nn.Module, inputs: torch.Tensor) -> int:
    model.train()
    optimizer = adamw(list(model.parameters()))
    tracker = MemTracker()
    tracker.track_external(model, optimizer, inputs)
    with tracker:
        out = model(inputs)
        out = getattr(out, "logits", out)
        gradient = torch.empty_like(out)
        out.backward(gradient)
        del out, gradient
        optimizer.step()
    peak = tracker.get_tracker_snapshot("peak")
    return int(peak[torch.device("meta")]["Total"])


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(8)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return x


@pytest.mark.parametrize("replay", [True, False])
@pytest.mark.parametrize("make", [llama, gpt2, images, Checkpointed])
def test_peak_is_that_of_the_tracker(make: Callable[[], nn.Module], replay: bool) -> None:
    inputs = torch.zeros(2, 64, dtype=torch.long, device="meta")
    if make is images:
        inputs = torch.empty(4, 3, 64, 64, device="meta")
    elif make is Checkpointed:
        inputs = torch.empty(128, 64, device="meta")
    with torch.device("meta"):
        model, other = make(), make()
    cost = run(model, inputs, train=True, optimizer=adamw, fused=False, replay=replay)
    assert cost.failure is None
    assert cost.memory.peak == tracked(other, inputs)
