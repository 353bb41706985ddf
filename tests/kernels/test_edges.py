"""Edges that chance does not show: each is right by one kernel and wrong by its neighbour."""

from __future__ import annotations

import pytest

from torchstone.kernels import Candidate, Problem, load_problem, verify
from torchstone.kernels.problem import problem_from_source
from torchstone.kernels.sessions.workshop import Workshop

MODEL_NEW = """import math
import torch


class ModelNew(torch.nn.Module):
{init}
    def forward(self, {names}):
        {body}
"""
NONE = ""
CHOSEN = "    def __init__(self, chosen):\n        super().__init__()\n"
MAXIMUM = (
    "if not x.numel():\n            return torch.logsumexp(x, -1)\n"
    "        m = x.amax(-1, keepdim=True)\n        {}"
    "        return (m + torch.log(torch.exp(x - m).sum(-1, keepdim=True)))[..., 0]"
)
GUARD = "m = torch.where(m.isinf(), 0.0, m)\n"
RESCALED = (
    "big, total = torch.full((*x.shape[:-1], 1), -math.inf), torch.zeros(*x.shape[:-1], 1)\n"
    "        for part in x.split(16, -1) if x.numel() else ():\n"
    "            new = torch.maximum(big, part.amax(-1, keepdim=True))\n"
    "            safe = torch.where(new.isinf(), 0.0, new)\n"
    "            shrink = torch.exp(big - safe)\n"
    "            {}\n"
    "            total = total * shrink + torch.exp(part - safe).sum(-1, keepdim=True)\n"
    "            big = new\n"
    "        return torch.exp(x - torch.where(big.isinf(), 0.0, big)) / total"
)
SKIPPED = "shrink = torch.where((new > big) & (new - big < 0.01), 1.0, shrink)"
BITS = (
    "key = (x + 0.0).view(torch.int32)\n        key = torch.where(key < 0, key ^ 0x7FFFFFFF, key)\n"
    "        return key.argmax(-1)"
)
SUMS = (
    "out = torch.zeros(a.shape[0], b.shape[1], dtype=torch.int32)\n"
    "        for at in range(0, a.shape[1], 256):\n"
    "            part = a[:, at : at + 256].int() @ b[at : at + 256].int()\n"
    "            out += part.clamp(-(1 << {bits}), (1 << {bits}) - 1)\n        return out"
)
BEST = "best, index = scores.topk(2, dim=-1)\n        return best.softmax(-1), index"
FLOORED = (
    "best, index = scores.clamp(min=-1e36).topk(2, dim=-1)\n"
    "        return best.softmax(-1), torch.where(best > -1e36, index, 0)"
)
EDGES = {
    # problem, names, around, right, wrong
    "infinities": ("logsumexp", "x", NONE, MAXIMUM.format(GUARD), MAXIMUM.format("\n")),
    "slow rise": ("softmax", "x", NONE, RESCALED.format("pass"), RESCALED.format(SKIPPED)),
    "signed zeros": ("argmax", "x", NONE, BITS, BITS.replace("(x + 0.0)", "x.clone()")),
    "whole extremes": ("matmul_int8", "a, b", NONE, SUMS.format(bits=24), SUMS.format(bits=21)),
    "equal sides": (
        "matmul", "a, b", NONE, "return a @ b",
        "return (a.T if a.shape[0] == a.shape[1] == b.shape[0] else a) @ b",
    ),
    "masked scores": ("moe_gating", "scores", CHOSEN, BEST, FLOORED),
    "floors": ("column_max", "x", NONE, "return x.amax(0)", "return x.clamp(min=-1e30).amax(0)"),
    "powers of two": (
        "cumulative_sum", "x", NONE, "return x.cumsum(-1)",
        "return x.cumsum(-1) * (1.001 if x.shape[-1] % 128 == 0 else 1)",
    ),
}  # fmt: skip


def judged(task: Problem | str, names: str, init: str, body: str, workshop: Workshop) -> list[str]:
    source = MODEL_NEW.format(init=init, names=names, body=body)
    task = load_problem(task) if isinstance(task, str) else task
    verdict = verify(task, Candidate(source, "torch"), seeds=2, workshop=workshop)
    assert not verdict.crash
    return [item.gate for item in verdict.failed]


@pytest.mark.parametrize("name", EDGES)
def test_an_edge(name: str, workshop: Workshop) -> None:
    problem, names, init, right, wrong = EDGES[name]
    assert judged(problem, names, init, right, workshop) == []
    failed = judged(problem, names, init, wrong, workshop)
    assert failed
    assert set(failed) <= {"families", "pattern"}, failed


WITH_TABLE = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(9, 7)
        self.table = torch.randn(7)  # no part of the state: other weights do not change it

    def forward(self, x):
        return self.layer(x) + self.table


def get_inputs():
    return [torch.randn(6, 9)]


def get_init_inputs():
    return []
"""
MADE = (
    "    def __init__(self):\n        super().__init__()\n"
    "        self.layer = torch.nn.Linear(9, 7)\n        self.table = torch.randn(7)\n"
    "        self.kept = None\n"
)


def test_weights_are_changed_only_as_the_reference_itself_follows(workshop: Workshop) -> None:
    kept = (
        "self.kept = self.layer.weight.detach().clone() if self.kept is None else self.kept\n"
        "        return x @ self.kept.T + self.layer.bias{}"
    )
    task = problem_from_source(WITH_TABLE, "with_table")
    # nobody can say what a model with half of its weights changed must answer
    assert judged(task, "x", MADE, kept.format(" + self.table"), workshop) == []
    plain = WITH_TABLE.replace(" + self.table", "")
    task = problem_from_source(plain, "plain")
    assert judged(task, "x", MADE, "return self.layer(x)", workshop) == []
    assert judged(task, "x", MADE, kept.format(""), workshop) == ["weights"]


def test_weights_under_other_names_are_known_by_what_they_hold(workshop: Workshop) -> None:
    task = problem_from_source(WITH_TABLE.replace(" + self.table", ""), "plain")
    init = MADE.replace("self.layer", "self.other")
    assert judged(task, "x", init, "return self.other(x)", workshop) == []
    kept = (
        "self.kept = self.other.weight.detach().clone() if self.kept is None else self.kept\n"
        "        return x @ self.kept.T + self.other.bias"
    )
    assert judged(task, "x", init, kept, workshop) == ["weights"]
