"""Peak memory is that of torch's own tracker where both run the same kernels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils.checkpoint import checkpoint
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from torchstone.cost import count_step, measure_cost
from torchstone.cost.counting.engine import run
from torchstone.cost.reporting.answer import memory_stack


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


FRESH = """
import torch
from torch import nn
from torchstone.cost.counting.engine import run
layers = [nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(6)]
with torch.device("meta"):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(6)])
x = torch.empty(256, 64, device="meta")
print([run(model, x, replay=flag).memory.peak for flag in (True, False, True)])
"""


def test_the_first_run_of_a_process_is_like_the_others() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    parameters = 6 * (64 * 64 + 64) * 4
    tensor = 256 * 64 * 4
    # the input, and at most three more: what goes into a layer, its product, what ReLU gives
    assert done.stdout.strip() == str([parameters + 4 * tensor] * 3)


class Partly(nn.Module):
    """A block with a parameter that gets no gradient, and one without elements."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(16, 16), nn.Linear(16, 16)
        self.nothing = nn.Parameter(torch.zeros(1, 0, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.cat([self.nothing.expand(x.shape[0], 0, 16), x], 1)
        return x + self.used(rows).tanh()


def test_parameters_without_a_gradient_get_none_when_copied() -> None:
    model = nn.Sequential(*[Partly() for _ in range(8)])
    x = torch.empty(4, 8, 16, device="meta")
    copied, whole = (run(model, x, train=True, optimizer=adamw, replay=f) for f in (True, False))
    assert whole.failure is None
    assert copied.failure is None
    assert copied.memory.gradients == whole.memory.gradients == 8 * (16 * 16 + 16) * 4
    assert copied.memory.peaks == whole.memory.peaks


def momentum(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=True)


def test_the_optimizer_is_counted_as_in_later_steps() -> None:
    model = nn.Linear(8, 8)
    cost = run(model, torch.empty(2, 8, device="meta"), train=True, optimizer=momentum)
    assert cost.memory.optimizer == 72 * 4
    # momentum x state, + gradient, then the parameter: 2 + 1 operations on 72 numbers, x 2
    assert cost.total("optimizer").vector_flops >= 3 * 72
    real = nn.Linear(8, 8)
    optimizer = momentum(list(real.parameters()))
    for _ in range(2):
        optimizer.zero_grad()
        with count_step(real) as step:
            real(torch.randn(2, 8)).sum().backward()
            optimizer.step()
    assert step.cost.total("optimizer").vector_flops == cost.total("optimizer").vector_flops
    assert step.cost.memory.optimizer == 72 * 4


def test_a_real_step_sees_the_state_of_earlier_steps() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    peaks = []
    for _ in range(3):
        optimizer.zero_grad()
        with count_step(model) as step:
            model(torch.randn(4, 64)).sum().backward()
            optimizer.step()
        peaks.append(step.cost.memory.peaks["backward"])
        assert step.cost.memory.optimizer == 2 * step.cost.memory.parameters
    assert peaks[1] == peaks[2] == peaks[0] + step.cost.memory.optimizer


@pytest.mark.parametrize(
    ("rows", "present", "absent"),
    [
        (1, "optimizer temporaries", "activations"),  # the optimizer's step is the peak
        (4096, "activations and temporaries", "optimizer temporaries"),  # the backward is
    ],
)
def test_the_chart_shows_what_is_alive_at_the_peak(rows: int, present: str, absent: str) -> None:
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(4)))
    report = measure_cost(model, (torch.empty(rows, 64),), train=True)
    parts = {part.name.en: part.value for part in memory_stack(report, ()).parts}
    assert sum(parts.values()) == report.cost.memory.later_peak
    assert present in parts
    assert absent not in parts
    assert parts["parameters"] == report.cost.memory.parameters
