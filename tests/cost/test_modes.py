"""Attention, autocast and real steps: the meta run says what the real one does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from torchstone.cost import count_step
from torchstone.cost.counting.engine import run
from torchstone.cost.records.ledger import BACKWARD, FORWARD, OPTIMIZER


class Attend(nn.Module):
    def __init__(self, mask: bool = False, heads: int = 4, width: int = 16) -> None:
        super().__init__()
        self.mask, self.heads, self.width = mask, heads, width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q = x.view(batch, length, 4, 16).transpose(1, 2)
        k = q[:, : self.heads]
        v = k[..., : self.width]
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device) if self.mask else None
        return F.scaled_dot_product_attention(
            q, k, v, mask, is_causal=not self.mask, enable_gqa=self.heads != 4
        )


@pytest.mark.parametrize(
    "model", [Attend(), Attend(mask=True), Attend(heads=2), Attend(True, 2), Attend(width=8)]
)
def test_attention_is_one_fused_kernel(model: Attend) -> None:
    x = torch.randn(2, 64, 64, requires_grad=True)
    fused, plain = (run(model, x, train=True, fused=flag) for flag in (True, False))
    expected = 2 * 2 * 4 * 64 * 64 * (16 + model.width)
    assert fused.total(FORWARD).flops == plain.total(FORWARD).flops == expected
    assert fused.total(BACKWARD).flops == plain.total(BACKWARD).flops == 2 * expected
    assert fused.memory.peak < plain.memory.peak
    assert any("flash" in key.operator or "efficient" in key.operator for key in fused.entries)


def test_attention_is_given_back() -> None:
    run(Attend(), torch.randn(1, 8, 64))
    x = torch.randn(1, 2, 8, 16, device="meta")
    with torch.profiler.profile() as profile:
        F.scaled_dot_product_attention(x, x, x)
    assert not any("flash" in event.key for event in profile.key_averages())


def formats(cost: object) -> dict[tuple[str, str], int]:
    return {
        (key.module, key.dtype): tally.flops
        for key, tally in cost.entries.items()  # type: ignore[attr-defined]
        if tally.flops and key.phase == FORWARD
    }


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4))
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: torch.Tensor, kind: str) -> torch.Tensor:
        with torch.autocast(kind, dtype=torch.bfloat16):
            y = self.net(x)
            with torch.autocast(kind, enabled=False):
                z = y.float() @ y.float().transpose(-1, -2)
            return z @ self.attention(y, y, y, need_weights=False)[0]


@pytest.mark.filterwarnings("ignore")
def test_autocast_is_that_of_a_real_run() -> None:
    model = Mixed()
    x = torch.randn(2, 3, 8)
    with count_step(model) as step:
        model(x, "cpu")
    for kind in ("cpu", "cuda", "meta"):
        cost = run(model, {"x": x, "kind": kind}, train=True)
        assert cost.failure is None
        assert formats(cost) == formats(step.cost)
    with pytest.raises(RuntimeError):
        torch.autocast("meta")  # as before


def test_autocast_from_outside() -> None:
    cost = run(nn.Linear(8, 8), torch.randn(2, 8), train=True, autocast=torch.float16)
    assert formats(cost) == {("", "float16"): 256}
    assert cost.memory.gradients == 4 * 72  # gradients are those of the float32 weights


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)), (2, 3, 8, 8)),
        (nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), (2, 10, 32)),
        (nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), (2, 4, 5, 5)),
        (nn.GRU(6, 5, 2), (3, 2, 6)),
    ],
)  # fmt: skip
def test_a_real_step_counts_the_same(model: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(*shape, requires_grad=True)
    optimizer = torch.optim.AdamW(model.parameters())
    with count_step(model) as step:
        out = model(x)
        (out[0] if isinstance(out, tuple) else out).sum().backward()
        optimizer.step()
    meta = run(model, x, train=True)
    for phase in (FORWARD, BACKWARD):
        assert step.cost.total(phase).flops == meta.total(phase).flops > 0
    assert step.cost.total(OPTIMIZER).vector_flops > 0
    assert step.cost.parameters() == meta.parameters()
    assert step.report.total["params"] == sum(p.numel() for p in model.parameters())
    assert not step.cost.uncounted


@pytest.mark.parametrize("quiet", [torch.no_grad, torch.inference_mode])
def test_evaluation_on_the_fast_path(quiet: type) -> None:
    model = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    x = torch.randn(2, 10, 32)
    with quiet(), count_step(model) as step:
        model(x)
    assert step.cost.total().flops == run(model, x).total().flops > 0


def test_a_step_that_raises_passes_through() -> None:
    model = nn.Linear(4, 4)
    step = count_step(model)

    def fails() -> None:
        with step:
            model(torch.randn(2, 4))
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fails()
    assert step.cost.total().flops == 64
    assert nn.Module.__call__.__name__ == "_wrapped_call_impl"


class Runs(nn.Module):
    def __init__(self, code: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.code = code

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.code(x)


def flex(x: torch.Tensor) -> torch.Tensor:
    q = x.view(2, 4, 64, 16)
    return flex_attention(q, q, q)


def flex_blocks(x: torch.Tensor) -> torch.Tensor:
    q = x.view(2, 4, 64, 16)
    mask = create_block_mask(lambda b, h, i, j: i >= j, 2, 4, 64, 64, device=x.device)
    return flex_attention(q, q, q, block_mask=mask)


def branch(x: torch.Tensor) -> torch.Tensor:
    size = torch.arange(4, device=x.device).sum()
    return torch.cond(size > 3, lambda x: x @ x.T, lambda x: x * 2, (x,))


def loop(x: torch.Tensor) -> torch.Tensor:
    count = torch.zeros((), dtype=torch.long, device=x.device)
    step = torch.eye(x.shape[1], device=x.device)
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y @ step), (count, x))[1]


@pytest.mark.parametrize(
    ("code", "shape", "flops"),
    [
        (flex, (8, 1024), 2 * 2 * 4 * 64 * 64 * 32),
        (flex_blocks, (8, 1024), 2 * 2 * 4 * 64 * 64 * 32),
        (branch, (5, 7), 2 * 5 * 7 * 5),
        (loop, (5, 7), 3 * 2 * 5 * 7 * 7),
        (torch.compile(lambda x: x @ x.T), (5, 7), 2 * 5 * 7 * 5),
        (lambda x: torch.compile(lambda y: y @ y.T)(x), (5, 7), 2 * 5 * 7 * 5),
        (torch.vmap(lambda row: row @ row), (5, 7), 2 * 5 * 7),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_operators_that_take_functions(
    code: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...], flops: int
) -> None:
    cost = run(Runs(code), torch.randn(*shape))
    assert cost.failure is None
    assert cost.total().flops == flops
    assert not cost.uncounted
