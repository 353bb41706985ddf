"""What a comparison says first: the plan that misses its bound, runs that part, a backward not compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from torchstone import compare_precision, compare_runs
from torchstone.core.answer import Answer
from torchstone.core.pictures import Table, Tree

X = torch.linspace(-1, 1, 32).reshape(4, 8)


def two_layers(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))


def answer_of(report: Any) -> Answer:
    answer = report.report.answer
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(("lang", "said"), [("en", "misses its bound"), ("zh", "未达到目标")])
def test_a_plan_says_that_it_misses_its_bound(lang: str, said: str) -> None:
    found = compare_precision(two_layers(), X, low=torch.float16, bound=0.0)
    assert found.plan is not None
    assert not found.plan.reached
    answer = answer_of(found)
    assert said in answer.warnings[0].get(lang)
    assert answer.state == "warning"
    assert said in found.to("text", lang)
    assert said in found.to("html", lang)


def test_a_plan_that_reaches_its_bound_does_not_warn() -> None:
    found = compare_precision(two_layers(), X, low=torch.float16, bound=0.1)
    assert answer_of(found).warnings == ()


def changed(index: int) -> tuple[nn.Module, nn.Module]:
    first, second = two_layers(), two_layers()
    with torch.no_grad():
        second[index].weight.mul_(1.5)
    return first, second


def test_runs_that_part_say_where_and_by_how_much_first() -> None:
    found = compare_runs(*changed(2), X)
    answer = answer_of(found)
    assert "`2`" in answer.headline.en
    assert "inputs differ by 0 %" in answer.headline.en
    assert answer.state == "bad"
    assert answer.tiles[0].value == f"{100 * found.output_error:.3g} %"
    assert "2.weight" in answer.lines[0].en
    assert answer.headline.en in found.to("text", "en")


def test_runs_that_agree_say_so() -> None:
    answer = answer_of(compare_runs(two_layers(), two_layers(), X))
    assert answer.state == "good"
    assert "agree" in answer.headline.en


def test_a_model_that_is_one_layer_is_compared() -> None:
    torch.manual_seed(0)
    found = compare_runs(nn.Linear(8, 8), nn.Linear(8, 8), X)
    assert [row.name for row in found.layers] == [""]
    assert "`(model)`" in answer_of(found).headline.en


class Renamed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.other(x)


def test_empty_tables_say_why() -> None:
    found = compare_runs(two_layers().requires_grad_(False), Renamed().requires_grad_(False), X)
    tables = {
        item.name.en: item.how  # type: ignore[union-attr]
        for measure in found.report.measures
        for item in measure.evidence
        if isinstance(item, Table) and not item.rows
    }
    assert set(tables) == {"Layers in order", "Weights that differ", "Gradients, the worst first"}
    assert all(str(how.en).startswith("empty: ") for how in tables.values())  # type: ignore[union-attr]
    assert "only the outputs" in answer_of(found).lines[0].en
    assert len(answer_of(found).warnings) == 2


def without_gradients(model: nn.Module) -> Any:
    with torch.no_grad():
        return compare_precision(model, X, low=torch.float16, loss=lambda out: out.sum())


def frozen(model: nn.Module) -> Any:
    return compare_precision(model.requires_grad_(False), X, low=torch.float16)


def unasked(model: nn.Module) -> Any:
    return compare_precision(model, X, low=torch.float16, backward=False)


def detached(model: nn.Module) -> Any:
    model.register_forward_hook(lambda _, __, out: out.detach())
    return compare_precision(model, X, low=torch.float16)


@pytest.mark.parametrize(
    ("compare", "reason"),
    [
        (without_gradients, "torch.no_grad"),
        (frozen, "no parameter requires"),
        (unasked, "backward=False"),
        (detached, "the output depends on nothing"),
    ],
)
def test_a_backward_that_was_not_compared_is_noted(
    compare: Callable[[nn.Module], Any], reason: str
) -> None:
    found = compare(two_layers())
    notes = [note.en for note in found.notes if "backward pass was not compared" in note.en]
    assert len(notes) == 1
    assert reason in notes[0]
    assert notes[0] in [text.en for text in answer_of(found).assumptions]
    assert found.gradient_errors == {}


def test_a_backward_that_was_compared_is_not_noted() -> None:
    found = compare_precision(two_layers(), X, low=torch.float16)
    assert not any("not compared" in note.en for note in found.notes)
    assert found.gradient_errors


class LosesBetweenModules(nn.Module):
    """Nearly equal numbers are subtracted in the model's own forward."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> Any:
        high = self.first(x) + 30
        variance = (high * high).mean(-1, keepdim=True) - high.mean(-1, keepdim=True) ** 2
        return self.last(variance * x)


def test_a_plan_that_cannot_help_names_the_line_instead_of_modules() -> None:
    torch.manual_seed(0)
    found = compare_precision(LosesBetweenModules(), torch.randn(8, 16), low=torch.float16)
    assert found.first_bad is not None
    assert found.first_bad.operator == "sub"
    assert found.plan is not None
    assert (found.plan.keep, found.plan.reached) == ((), False)
    assert "no set of modules" in answer_of(found).warnings[0].en
    assert found.findings[0].remedy.say("en") == "compute this line in fp32"


def test_the_operators_of_our_own_loss_are_not_shown_as_files_of_ours() -> None:
    found = compare_precision(two_layers(), X, low=torch.float16)
    assert not any("torchstone/tensors" in item.place.path for item in found.operators)


def test_the_module_tree_is_coloured_by_error() -> None:
    torch.manual_seed(0)
    found = compare_precision(LosesBetweenModules(), torch.randn(8, 16), low=torch.float16)
    trees = [e for m in found.report.measures for e in m.evidence if isinstance(e, Tree)]
    assert trees[0].root.name == "LosesBetweenModules"
    groups = {branch.name: branch.group for branch in (trees[0].root, *trees[0].root.children)}
    assert groups["first"] != groups["LosesBetweenModules"]
    assert groups["LosesBetweenModules"] in ("10–100 %", "≥ 100 %")
