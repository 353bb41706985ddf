"""Who is blamed, what is proposed, and how mistakes are told."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from tests.tensors.compare.fault_suite import (
    CASES,
    HALF,
    HEALTHY,
    Case,
    NaiveVariance,
    SquareOverflow,
    Transformer,
)
from torchstone import compare_precision, compare_runs
from torchstone.core.errors import InputError, UsageError


def is_named(case: Case, seed: int) -> bool:
    model, batch = case.build(seed)
    bad = compare_precision(model, batch, low=case.low, simulate=True, plan=False).first_bad
    return (
        bad is not None
        and bad.place.path.endswith("fault_suite.py")
        and bad.place.line in case.lines()
    )


def test_the_first_bad_operator_is_named() -> None:
    """One architecture of every fault here; all of them in `make bench`."""
    later = ("Aside", "Unseen")  # scored in the benchmark only
    chosen = [
        case
        for place, case in enumerate(CASES)
        if place % 3 == place // 3 % 3 and not case.name.split("/")[1].endswith(later)
    ]
    missed = [case.name for case in chosen if not is_named(case, 0)]
    assert len(chosen) == 14
    assert missed == []


@pytest.mark.parametrize("name", list(HEALTHY))
def test_healthy_networks_are_left_alone(name: str) -> None:
    torch.manual_seed(0)
    model, batch = HEALTHY[name](0)
    for low in (torch.float16, torch.bfloat16):
        assert compare_precision(model, batch, low=low, simulate=True).first_bad is None


def test_the_plan_is_proven_by_running_it() -> None:
    torch.manual_seed(0)
    model, batch = Transformer(NaiveVariance()), torch.randint(0, 64, (4, 16))
    report = compare_precision(model, batch, simulate=True)
    plan = report.plan
    assert plan is not None
    assert plan.keep == ("fault",)
    assert plan.reached
    assert plan.error_after <= plan.bound < plan.error_before


def test_an_overflow_is_cured_by_the_plan() -> None:
    torch.manual_seed(0)
    model, batch = Transformer(SquareOverflow()), torch.randint(0, 64, (4, 16))
    report = compare_precision(model, batch, low=HALF, simulate=True)
    assert report.plan is not None
    assert report.plan.error_before > 0.5
    assert report.plan.keep == ("fault",)
    assert report.plan.reached


def test_three_numbers_for_every_operator() -> None:
    torch.manual_seed(0)
    model, batch = Transformer(NaiveVariance()), torch.randint(0, 64, (4, 16))
    report = compare_precision(model, batch, high=torch.float64, simulate=True)
    bad = report.first_bad
    assert bad is not None
    rows = [item for item in report.operators if item.place == bad.place and item.operator == "sub"]
    (sub,) = rows
    assert sub.local_units < 1  # correctly rounded: the operator itself adds next to nothing
    assert sub.amplification > 8
    assert sub.inherited > 0.05
    rounded = [i for i in report.operators if i.operator == "addmm" and i.place.phase == "forward"]
    assert all(0.2 < item.local_units < 1 for item in rounded)


def test_the_report_says_where_why_and_what_to_keep() -> None:
    torch.manual_seed(0)
    model, batch = Transformer(NaiveVariance()), torch.randint(0, 64, (4, 16))
    report = compare_precision(model, batch, simulate=True, lang="en")
    text = str(report)
    assert "is the first bad operator (forward)" in text
    assert "keep `fault` in fp32: the output error was then measured as" in text
    assert "mean * mean  # bad" in report.to("text", detail=2)
    assert "Error along the forward pass" in report.to("html")
    assert "保持在 fp32" in report.to("text", "zh")
    assert json.loads(report.to_json())["findings"][0]["path"].endswith("fault_suite.py")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"low": torch.int8}, "low"),
        ({"high": torch.float16}, "high"),
        ({"layers": ["nothing"]}, "nothing"),
        ({"loss": lambda out: out}, "loss"),
    ],
)
def test_mistakes_are_told(change: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compare_precision(nn.Linear(3, 3), torch.randn(2, 3), simulate=True, **change)  # type: ignore[arg-type]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(UsageError, match="a function"):
        compare_precision(lambda x: x, torch.randn(2, 3))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="meta"):
        compare_precision(nn.Linear(3, 3, device="meta"), torch.randn(2, 3), simulate=True)


def test_a_model_that_cannot_run_says_where() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x.view(7, -1))

    model = Mixed()
    with pytest.raises(InputError, match="shape"):
        compare_precision(model, torch.randn(2, 3), simulate=True)
    assert model.inner.weight.dtype == torch.float32


# -- compare_runs


def test_equal_models_do_not_diverge() -> None:
    torch.manual_seed(0)
    a = Transformer()
    b = Transformer()
    b.load_state_dict(a.state_dict())
    report = compare_runs(a, b, torch.randint(0, 64, (2, 9)))
    assert report.first_divergence is None
    assert report.output_error == 0
    assert not report.findings


def test_the_changed_layer_is_named() -> None:
    torch.manual_seed(0)
    a, b = Transformer(), Transformer()
    b.load_state_dict(a.state_dict())
    with torch.no_grad():
        b.before[1].up.weight[3, 4] += 0.5
    report = compare_runs(a, b, torch.randint(0, 64, (2, 9)), lang="en")
    assert report.first_divergence is not None
    assert report.first_divergence.name == "before.1.up"
    assert list(report.weights) == ["before.1.up.weight"]
    assert "its weights differ: before.1.up.weight" in str(report)
    assert report.gradients["head.weight"] > 0


def test_a_memory_limit_changes_the_passes_and_not_the_answer() -> None:
    torch.manual_seed(0)
    a, b = Transformer(), Transformer()
    ids = torch.randint(0, 64, (2, 9))
    runs = []
    a.register_forward_hook(lambda *_: runs.append(1))
    whole = compare_runs(a, b, ids)
    assert len(runs) == 1
    largest_layer = 2 * 9 * (32 + 128) * 4
    split = compare_runs(a, b, ids, memory_limit=2 * largest_layer)
    assert split.layers == whole.layers
    held_at_once = len(whole.layers) / (len(runs) - 1)
    assert 1 <= held_at_once < len(whole.layers) / 2, len(runs)
    assert split.gradients == whole.gradients


def test_another_implementation_is_named_too() -> None:
    class Other(nn.LayerNorm):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * 1.001

    torch.manual_seed(0)
    a, b = Transformer(), Transformer()
    b.after[0].norm2 = Other(32)  # type: ignore[union-attr]
    b.load_state_dict(a.state_dict())
    report = compare_runs(a, b, torch.randint(0, 64, (2, 9)), lang="en")
    assert report.first_divergence is not None
    assert report.first_divergence.name == "after.0.norm2"
    assert "the computation differs" in str(report)


def test_runs_with_other_shapes_and_modules_are_told() -> None:
    a = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    b = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3), nn.ReLU())
    b[0].load_state_dict(a[0].state_dict())
    report = compare_runs(a, b, torch.randn(2, 4))
    assert report.first_divergence is not None
    assert report.first_divergence.name == "1"
    assert report.only_in_b == ("2",)
    json.loads(report.to_json())


def test_runs_refuse_what_is_no_model() -> None:
    with pytest.raises(UsageError, match="model_b"):
        compare_runs(nn.Linear(2, 2), "model", torch.randn(1, 2))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Linear"):
        compare_runs(nn.Linear(2, 2), nn.Linear(2, 2), torch.randn(1, 3))


class InVmap(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        return self.outer(torch.func.vmap(lambda row: torch.tanh(self.inner(row)))(x))


def test_layers_inside_vmap_are_passed_over() -> None:
    torch.manual_seed(0)
    model = InVmap()
    found = compare_runs(model, model, torch.randn(4, 8))
    assert [row.name for row in found.layers] == ["outer"]
    assert compare_precision(model, torch.randn(4, 8), low=torch.float16).output_error < 0.01


def test_a_compiled_model_is_followed_layer_by_layer() -> None:
    torch.manual_seed(0)
    model, batch = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)), torch.randn(4, 8)
    compiled = torch.compile(model, backend="eager")
    assert len(compare_runs(compiled, compiled, batch).layers) == 3
    found = compare_precision(compiled, batch, low=torch.float16)
    assert {item.place.module.removeprefix("_orig_mod") for item in found.operators} >= {".0", ".2"}


class Flexible(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> Any:
        heads = self.linear(x).view(2, 8, 2, 8).transpose(1, 2)
        return flex_attention(heads, heads, heads)


@pytest.mark.filterwarnings("ignore")
def test_flex_attention_runs_and_is_noted() -> None:
    model, batch = Flexible(), torch.randn(2, 8, 16)
    with torch.no_grad():  # it has no backward on the CPU
        found = compare_precision(model, batch, low=torch.float16)
        assert compare_runs(model, model, batch).output_error == 0
    assert any("flex_attention" in note.en for note in found.notes)
