"""Two ranks against one process: programs whose gradients agree, and programs whose gradients do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.experiments.against_one import HELD
from torchstone.conductor.experiments.against_one.running import compare_with_one
from torchstone.conductor.experiments.recording.session import Start

FRAME = """
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def gather(x):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.detach())
    parts[dist.get_rank()] = x
    return torch.cat(parts)


def contrast(a, b):
    everything = {gathered}
    labels = torch.arange(len(a)) {offset}
    return F.cross_entropy(a @ everything.T, labels)


def reduce_gradients(model):
    for item in model.parameters():
        dist.all_reduce(item.grad)
        item.grad /= {divisor}


def main():
    dist.init_process_group("gloo")
    torch.manual_seed({seed})
    model = nn.Linear(6, 4)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 6), torch.randn(32, 6))
    loader = DataLoader(data, 4, sampler=DistributedSampler(data))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = {loss}
        loss.backward()
        {reduce}
        optimizer.step()


if __name__ == "__main__":
    main()
"""
CLEAN = {
    "seed": "0",
    "gathered": "gather(b)",
    "offset": "+ len(a) * dist.get_rank()",
    "divisor": "dist.get_world_size()",
    "loss": "(model(x) - model(y)).pow(2).mean()",
    "reduce": "reduce_gradients(model)",
}


def compared(folder: Path, **changes: str) -> tuple[list[str], list[float], str]:
    text = FRAME
    for key, value in {**CLEAN, **changes}.items():
        text = text.replace(f"{{{key}}}", value)
    (folder / "train.py").write_text(text)
    report = compare_with_one(Start(folder, "train.py"), 2)
    held = [item.value for item in report.measures if item.name == HELD]
    lines = text.splitlines()
    where = [lines[item.line - 1].strip() for item in report.findings]
    return [item.rule for item in report.findings], held, " ".join(where)


def test_averaged_gradients_agree(tmp_path: Path) -> None:
    assert compared(tmp_path) == ([], [1.0], "")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"divisor": "1"}, "EX202"),
        ({"reduce": ""}, "EX201"),
        ({"loss": "contrast(model(x), model(y))", "offset": ""}, "EX201"),
        # the other ranks' losses say nothing about the own share: half of the gradient is missing
        ({"loss": "contrast(model(x), model(y))"}, "EX201"),
    ],
)
def test_gradients_that_part(tmp_path: Path, changes: dict[str, str], rule: str) -> None:
    rules, held, _ = compared(tmp_path, **changes)
    assert (rules, held) == ([rule], [0.0])


def test_a_loss_that_is_wrong_is_named(tmp_path: Path) -> None:
    _, _, where = compared(tmp_path, loss="contrast(model(x), model(y))", offset="")
    assert where == "return F.cross_entropy(a @ everything.T, labels)"


def test_weights_that_differ_do_not_hide_what_else_is_wrong(tmp_path: Path) -> None:
    """Every rank begins with the weights of rank 0 in a second comparison."""
    rules, held, where = compared(
        tmp_path, seed="dist.get_rank()", loss="contrast(model(x), model(y))", offset=""
    )
    assert (rules, held) == (["EX201"], [0.0])
    assert where == "return F.cross_entropy(a @ everything.T, labels)"


def test_what_cannot_be_joined_is_not_decided(tmp_path: Path) -> None:
    rules, held, _ = compared(tmp_path, reduce="raise SystemExit")
    assert (rules, held) == ([], [])
