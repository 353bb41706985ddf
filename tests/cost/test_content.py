"""What a meta run must know of its tensors: values that are known, and choices that are assumed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from torchstone.cost import measure_cost
from torchstone.cost.counting.engine import run
from torchstone.cost.records.ledger import Cost


class Code(nn.Module):
    def __init__(self, code: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.code = code

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.code(x)


def counted(code: Callable[[torch.Tensor], torch.Tensor], *shape: int) -> Cost:
    cost = run(Code(code), torch.randn(*shape))
    assert cost.failure is None, cost.failure
    return cost


def by_value(x: torch.Tensor) -> torch.Tensor:
    count = int(torch.arange(5).sum().item())
    return x[:count] @ x[:count].T


def by_list(x: torch.Tensor) -> torch.Tensor:
    parts = x.split(torch.tensor([3, 7]).to(x.device).tolist())
    return parts[1] @ parts[1].T


def by_mask(x: torch.Tensor) -> torch.Tensor:
    keep = torch.zeros(10, dtype=torch.bool, device=x.device)
    keep[2:6] = True
    return x[keep] @ x[keep].T


def by_nonzero(x: torch.Tensor) -> torch.Tensor:
    rows = (torch.arange(10, device=x.device) % 2 == 0).nonzero().squeeze(1)
    return x[rows] @ x[rows].T


def by_where(x: torch.Tensor) -> torch.Tensor:
    (rows,) = torch.where(torch.arange(10, device=x.device) > 6)
    return x[rows] @ x[rows].T


def by_cpu(x: torch.Tensor) -> torch.Tensor:
    rows = torch.tensor([1, 2, 3])
    return x[rows] @ x[rows].T


def by_in_place(x: torch.Tensor) -> torch.Tensor:
    size = torch.zeros((), dtype=torch.long, device=x.device)
    size.add_(4)
    size[...] = size + 1
    n = size.item()
    return x[:n] @ x[:n].T


def by_name(x: torch.Tensor) -> torch.Tensor:
    n = int(f"{torch.arange(5, device=x.device).max()}")
    return x[:n] @ x[:n].T


def by_constant(x: torch.Tensor) -> torch.Tensor:
    n = torch.tensor([2, 3], device=x.device).expand(1, 2).tolist()[0][1]
    return x[:n] @ x[:n].T


def by_slices(x: torch.Tensor) -> torch.Tensor:
    sizes = torch.empty(1, 2, dtype=torch.long, device=x.device)
    sizes[0, 0] = 3
    sizes[0, 1] = 2
    n = sizes.prod().item()
    return x[:n] @ x[:n].T


def by_scalar(x: torch.Tensor) -> torch.Tensor:
    return x.masked_fill(x > 0, torch.tensor(0.5)) @ x.T


@pytest.mark.parametrize(
    ("code", "rows"),
    [(by_value, 10), (by_list, 7), (by_mask, 4), (by_nonzero, 5), (by_where, 3), (by_cpu, 3),
     (by_in_place, 5), (by_name, 4), (by_constant, 3), (by_slices, 6), (by_scalar, 10)],
)  # fmt: skip
def test_known_contents_are_used(code: Callable[..., torch.Tensor], rows: int) -> None:
    cost = counted(code, 10, 4)
    assert cost.total().flops == 2 * rows * rows * 4
    assert not cost.assumptions


def route(x: torch.Tensor) -> torch.Tensor:
    """Eager mixture of experts: two of eight experts a token, in a loop over those that are hit."""
    weights = torch.ones(8, 4, 16, device=x.device)
    chosen = (x @ torch.ones(4, 8, device=x.device)).softmax(-1).topk(2)[1]
    mask = F.one_hot(chosen, 8).permute(2, 1, 0)
    out = torch.zeros(x.shape[0], 16, device=x.device)
    for expert in (mask.sum((-1, -2)) > 0).nonzero():
        _, tokens = torch.where(mask[expert[0]])
        out.index_add_(0, tokens, x[tokens] @ weights[expert[0]])
    return out


def test_routing_is_balanced_and_said() -> None:
    cost = counted(route, 13, 4)
    assert cost.total().flops == 2 * 13 * 4 * 8 + 2 * (13 * 2) * 4 * 16
    assert [item.id for item in cost.assumptions] == ["balanced-routing"]
    assert "8" in cost.assumptions[0].text.say("zh")


def test_what_only_the_data_decide_is_assumed_and_said() -> None:
    def ask(x: torch.Tensor) -> torch.Tensor:
        if (x > 0).all():
            return x
        return x[x[:, 0] > 0] @ x.T

    cost = counted(ask, 6, 4)
    assert cost.total().flops == 2 * 6 * 4 * 6  # every row taken
    assert {item.id for item in cost.assumptions} == {"unknown-value", "all-selected"}


def test_a_loop_that_waits_for_the_data_ends() -> None:
    def wait(x: torch.Tensor) -> torch.Tensor:
        while not (x > 0).all():
            x = x + 1
        return x

    cost = run(Code(wait), torch.randn(2, 2))
    assert cost.failure is not None
    assert "EndlessWait" in cost.failure.error


def test_random_numbers_of_the_user_are_not_drawn() -> None:
    model = Code(lambda x: x * torch.rand(10, device=x.device) + torch.randint(0, 4, (10,)))
    x = torch.ones(10)
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    assert run(model, x).failure is None
    assert torch.equal(torch.rand(1), expected)


def test_grouped_products_in_any_format() -> None:
    def grouped(x: torch.Tensor) -> torch.Tensor:
        weights = torch.ones(3, 8, 16, dtype=x.dtype, device=x.device)
        ends = torch.tensor([4, 8, 12], dtype=torch.int32, device=x.device)
        return torch._grouped_mm(x, weights, offs=ends)

    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        cost = run(Code(grouped), torch.randn(12, 8, dtype=dtype))
        assert cost.failure is None
        assert cost.total().flops == 2 * 12 * 8 * 16


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LSTM(8, 16, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        known = [5, 3] if lengths is None else lengths.cpu()
        out, _ = self.inner(pack_padded_sequence(x, known, batch_first=True))
        return pad_packed_sequence(out, batch_first=True)[0]


def test_packed_sequences_of_known_lengths() -> None:
    x = torch.randn(2, 5, 8)
    for inputs in ((x,), (x, torch.tensor([5, 3]))):
        cost = run(Packed(), inputs, train=True)
        assert cost.failure is None
        # eight rows go through the input product, and as many through the recurrent one
        assert cost.total("forward").flops == 2 * 8 * (8 * 64 + 16 * 64)
        assert not cost.assumptions


def test_a_list_of_known_values_becomes_a_tensor() -> None:
    """As positions of pictures are computed: the largest of a small table decides a size."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
            sizes = torch.tensor([grid.max() + 1 - 3, grid.min()], device=x.device)
            return self.layer(x[: sizes[0].item()])

    report = measure_cost(Net(), (torch.empty(8, 4), torch.tensor([[1, 5]])))
    assert report.cost.failure is None
    assert report.total["flops"] == 2 * 3 * 4 * 4
