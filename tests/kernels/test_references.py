"""References are not all alike: chance, structure, plain numbers, nesting and None are told apart."""

from __future__ import annotations

import pytest
import torch

from tests.kernels.referees import loaded
from torchstone.core.errors import InputError
from torchstone.kernels import Candidate, Problem, Verdict, verify
from torchstone.kernels.gates import families
from torchstone.kernels.harness.inputs.structure import structures_of
from torchstone.kernels.harness.reference import running
from torchstone.kernels.harness.reference.conventions import free_places
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Workshop

FORM = """import torch


class Model(torch.nn.Module):
    def forward(self, {names}):
        {answer}


def get_inputs():
    {inputs}


def get_init_inputs():
    return []
"""
CANDIDATE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, {names}):
        {answer}
"""


def judged(workshop: Workshop, names: str, inputs: str, reference: str, candidate: str) -> Verdict:
    source = FORM.format(names=names, answer=reference, inputs=inputs)
    problem = Problem("small", source, "torch")
    made = Candidate(CANDIDATE.format(names=names, answer=candidate), "torch")
    return verify(problem, made, seeds=2, workshop=workshop)


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    "answer", ["return torch.dropout(x, 0.5, True)", "return x + torch.rand_like(x)"]
)
def test_a_random_reference_is_the_problems_fault(answer: str, workshop: Workshop) -> None:
    with pytest.raises(InputError, match="draws its answer at random"):
        judged(workshop, "x", "return [torch.randn(8, 8)]", answer, "return x")


@pytest.mark.usefixtures("few_sizes")
def test_a_candidate_that_draws_is_not_blamed_for_a_random_reference(workshop: Workshop) -> None:
    draws = "return x + torch.rand_like(x)"
    with pytest.raises(InputError, match="draws its answer at random"):
        judged(workshop, "x", "return [torch.randn(8, 8)]", draws, draws)


def with_parts(source: str, parts: str) -> str:
    """A class with an `__init__` that makes these parts."""
    made = (
        f"    def __init__(self):\n        super().__init__()\n        {parts}\n\n    def forward"
    )
    return source.replace("    def forward", made)


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    ("parts", "reference", "right", "wrong", "said"),
    [
        ("self.d = torch.nn.Dropout(0.3)", "return self.d(x * 3)", "return self.d(3 * x)",
         "return self.d(x * 2)", "at random"),
        ("self.register_buffer('m', torch.ones(8))",
         "self.m.mul_(0.9).add_(x.mean(0)) if self.training else None; return x - self.m",
         "self.m.copy_(0.9 * self.m + x.mean(0)) if self.training else None; return x - self.m",
         "return x - self.m", "changes the next answer"),
    ],
    ids=["dropout", "state"],
)  # fmt: skip
def test_what_differs_from_call_to_call_in_training_is_judged_in_evaluation(
    parts: str, reference: str, right: str, wrong: str, said: str, workshop: Workshop
) -> None:
    inputs = "return [torch.randn(6, 8)]"
    source = with_parts(FORM.format(names="x", answer=reference, inputs=inputs), parts)
    problem = Problem("small", source, "torch")
    for answer, accepted in ((right, True), (wrong, False)):
        code = with_parts(CANDIDATE.format(names="x", answer=answer), parts)
        verdict = verify(problem, Candidate(code, "torch"), seeds=2, workshop=workshop)
        assert verdict.accepted == accepted, verdict.error_log()
        gaps = [item.detail.en for item in verdict.results if item.status == "gap"]
        assert not accepted or any(said in item for item in gaps)


@pytest.mark.usefixtures("few_sizes")
def test_a_python_number_comes_out_of_single_precision(workshop: Workshop) -> None:
    inputs = "return [torch.randn(12, 20)]"
    for answer, accepted in (("x.sum().item()", True), ("float(x.half().float().sum())", False)):
        verdict = judged(workshop, "x", inputs, "return float(x.sum())", f"return {answer}")
        assert verdict.accepted == accepted, verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_complex_answers_are_the_problems_to_split(workshop: Workshop) -> None:
    with pytest.raises(InputError, match="view_as_real"):
        judged(workshop, "x", "return [torch.randn(8, 8)]", "return torch.fft.rfft(x)", "return x")


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    ("inputs", "reference", "candidate"),
    [
        ("return [torch.randn(16, 16).tril(), torch.randn(16, 4)]", "return x @ y",
         "return x.tril() @ y"),
        ("a = torch.randn(16, 16); return [a + a.T, torch.randn(16, 4)]", "return x @ y",
         "return x.mT @ y"),
        ("return [torch.randn(16).sort().values, torch.randn(16)]", "return x.max() * y",
         "return x[-1] * y"),
    ],
)  # fmt: skip
def test_a_structure_that_the_problem_promises_may_be_used(
    inputs: str, reference: str, candidate: str, workshop: Workshop
) -> None:
    verdict = judged(workshop, "x, y", inputs, reference, candidate)
    assert verdict.accepted, verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_a_plain_number_is_no_constant(workshop: Workshop) -> None:
    inputs = "return [torch.randn(8, 8), 0.5]"
    right = judged(workshop, "x, s", inputs, "return x * s", "return s * x")
    assert right.accepted, right.error_log()
    wrong = judged(workshop, "x, s", inputs, "return x * s", "return x * 0.5")
    assert not wrong.accepted
    assert "scalars" in wrong.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_a_truth_is_no_constant(workshop: Workshop) -> None:
    inputs = "return [torch.randn(8, 8), True]"
    reference = "return x.flip(0) if s else x + 1"
    right = judged(workshop, "x, s", inputs, reference, "return x.flip([0]) if s else 1 + x")
    assert right.accepted, right.error_log()
    wrong = judged(workshop, "x, s", inputs, reference, "return x.flip([0])")
    assert not wrong.accepted
    assert "scalars" in wrong.error_log()


ATTENTION = "return [*(torch.randn(2, 6, 8) for _ in range(3)), torch.arange(6).unsqueeze(1) != 2]"
ATTENDS = "return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m) + 1"


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    ("masked", "accepted"), [('float("-inf")', True), ("-1e9", False)], ids=["nan", "mean"]
)
def test_a_query_that_sees_nothing_gives_zero_or_nan(
    masked: str, accepted: bool, workshop: Workshop
) -> None:
    scores = f"(q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~m, {masked})"
    verdict = judged(
        workshop, "q, k, v, m", ATTENTION, ATTENDS, f"return {scores}.softmax(-1) @ v + 1"
    )
    assert verdict.accepted == accepted, verdict.error_log()
    (pattern,) = (item for item in verdict.results if item.gate == "pattern")
    assert ("by convention" in pattern.detail.en) == accepted


@pytest.mark.usefixtures("few_sizes")
def test_nan_instead_of_a_zero_row_is_wrong_without_attention(workshop: Workshop) -> None:
    candidate = "return torch.where((x < -1e38).all(-1, True), float('nan'), x.relu())"
    verdict = judged(workshop, "x", "return [torch.randn(8, 8)]", "return x.relu()", candidate)
    assert "masked" in verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_what_is_reduced_over_nothing_may_have_no_value(workshop: Workshop) -> None:
    inputs = "return [torch.randn(6, 9), torch.randn(6, 9).softmax(-1)]"
    reference = "return -(y * x.log_softmax(-1)).sum(-1)"
    answer = "return -(y * x.log_softmax(-1)).sum(-1) + (0 if x.shape[-1] else {nothing})"
    for nothing, accepted in (("float('-inf')", True), ("1.0", False)):
        candidate = answer.format(nothing=nothing)
        verdict = judged(workshop, "x, y", inputs, reference, candidate)
        assert verdict.accepted == accepted, verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_a_deviation_may_square_in_the_format_of_its_inputs(workshop: Workshop) -> None:
    answer = "c = x - x.mean(-1, True); return (c * c).sum(-1).div(x.shape[-1] - 1).sqrt()"
    verdict = judged(workshop, "x", "return [torch.randn(6, 9)]", "return x.std(-1)", answer)
    assert verdict.accepted, verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_a_plain_number_may_be_negative(workshop: Workshop) -> None:
    inputs = "return [torch.randn(8, 8), 0.5]"
    verdict = judged(workshop, "x, s", inputs, "return x * s", "return x * abs(s)")
    assert "scalars" in verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_truths_may_all_be_true(workshop: Workshop) -> None:
    inputs = "return [torch.randn(8, 12), torch.rand(8, 12) > 0.5]"
    candidate = "return (x * m * (1 - m.all().float())).sum(1)"
    verdict = judged(workshop, "x, m", inputs, "return (x * m).sum(1)", candidate)
    assert "truths" in verdict.error_log()


NORM = """import torch
import torch.nn.functional as F


class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(6)
        self.kept = None

    def forward(self, x):
        n = self.norm
        if self.training:
            {training}
        {evaluation}
"""
TRAINING = "return n(x)"
ONCE = (
    "return n(x) if n.num_batches_tracked == 0 else "
    "F.batch_norm(x, None, None, n.weight, n.bias, training=True)"
)
FIXED = "return F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias)"
KEPT = (
    "self.kept = self.kept or (n.running_mean.clone(), n.running_var.clone()); "
    "return F.batch_norm(x, *self.kept, n.weight, n.bias)"
)


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    ("training", "evaluation", "accepted"),
    [
        (TRAINING, FIXED, True),
        (ONCE, FIXED, False),
        (TRAINING, KEPT, False),
        (TRAINING, FIXED + " + (x.shape[0] != 9)", False),
    ],
    ids=["right", "updates once", "keeps statistics", "knows one batch"],
)
def test_a_model_is_trained_and_evaluated_in_turns(
    training: str, evaluation: str, accepted: bool, workshop: Workshop
) -> None:
    tail = "\n\ndef get_inputs():\n    return [torch.randn(9, 6)]\n\n\ndef get_init_inputs():\n    return []\n"
    source = NORM.format(name="Model", training=TRAINING, evaluation="return n(x)") + tail
    candidate = NORM.format(name="ModelNew", training=training, evaluation=evaluation)
    problem = Problem("small", source, "torch")
    verdict = verify(problem, Candidate(candidate, "torch"), seeds=2, workshop=workshop)
    assert verdict.accepted == accepted, verdict.error_log()
    assert accepted or "[modes]" in verdict.error_log()


SCALED = """import torch


class {name}(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width))

    def forward(self, x):
        {answer}
"""


@pytest.mark.usefixtures("few_sizes")
def test_one_that_only_fits_by_broadcasting_is_no_size(workshop: Workshop) -> None:
    tail = "\n\ndef get_inputs():\n    return [torch.randn(6, 9)]\n\n\ndef get_init_inputs():\n    return [9]\n"
    problem = Problem(
        "small", SCALED.format(name="Model", answer="return x * self.weight") + tail, "torch"
    )
    answer = "y = torch.empty_like(x); y[:] = x * self.weight[: x.shape[1]]; return y"
    candidate = Candidate(SCALED.format(name="ModelNew", answer=answer), "torch")
    verdict = verify(problem, candidate, seeds=2, workshop=workshop)
    assert verdict.accepted, verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_the_first_of_nothing_may_be_refused(workshop: Workshop) -> None:
    answer = "y = x.numpy().cumsum(-1); return torch.from_numpy(y[:, -1].copy())"
    verdict = judged(workshop, "x", "return [torch.randn(6, 9)]", "return x.sum(-1)", answer)
    assert verdict.accepted, verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ("i = x.nan_to_num(9e9).argmin(1); return x.amin(1), i", True),
        ("i = x.nan_to_num(9e9).argmin(1); return x.gather(1, i[:, None])[:, 0], i", False),
        ("i = x.argmin(1); return x.amin(1), torch.where(x.isnan().any(1), -1, i)", False),
        ("i = x.argmin(1); return x.amin(1), i * (1 - x.isnan().any().long())", False),
    ],
    ids=["another place", "value without NaN", "no place", "rows without NaN"],
)
def test_nan_in_values_and_their_places(answer: str, accepted: bool, workshop: Workshop) -> None:
    reference = "v, i = x.min(1); return v, i"
    verdict = judged(workshop, "x", "return [torch.randn(8, 12)]", reference, answer)
    assert verdict.accepted == accepted, verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_nested_answers_and_none_are_compared(workshop: Workshop) -> None:
    inputs, answer = "return [torch.randn(8, 8)]", "return {'a': [x + 1, None], 'b': (x * 2,)}"
    right = judged(workshop, "x", inputs, answer, answer.replace("x + 1", "1 + x"))
    assert right.accepted, right.error_log()
    for other in ("{'a': [x + 1, x], 'b': (x * 2,)}", "{'a': [x + 1, None], 'b': (x * 3,)}",
                  "{'a': [x + 1, None]}"):  # fmt: skip
        assert not judged(workshop, "x", inputs, answer, f"return {other}").accepted


def test_structures_are_known_by_what_all_draws_share() -> None:
    def names(*draws: torch.Tensor) -> list[str]:
        return structures_of([[draw] for draw in draws]).names

    square = torch.randn(6, 6)
    assert names(square.tril(), torch.randn(6, 6).tril()) == ["lower triangular"]
    assert names(square.tril(), square) == []
    assert names(square @ square.T + torch.eye(6)) == ["positive definite"]
    assert names(square + square.T) == ["symmetric"]
    assert names(torch.eye(6)[torch.tensor([1, 4, 2])]) == ["one-hot"]
    assert names(torch.randn(3, 9).sort().values) == ["sorted"]


@pytest.mark.parametrize(
    "made",
    [torch.randn(6, 6).tril(), torch.randn(6, 6).triu(), torch.eye(6) * 2 + 0.1,
     torch.randn(3, 9).sort().values, torch.eye(6)[torch.tensor([1, 4, 2])]],
)  # fmt: skip
def test_a_structure_is_put_back(made: torch.Tensor) -> None:
    kept = structures_of([[made]])
    [restored] = kept.restored([torch.randn(made.shape)])
    assert structures_of([[restored]]).names == kept.names


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    ("inputs", "reference", "accepted"),
    [
        ("return [torch.randn(8, 12)]", "return x.softmax(-1).topk(3).indices", True),
        ("return [torch.rand(8, 12)]", "return x.abs().topk(3).indices", False),
    ],
    ids=["underflow", "another order"],
)
def test_places_among_what_underflows_may_follow_the_input(
    inputs: str, reference: str, accepted: bool, workshop: Workshop
) -> None:
    verdict = judged(workshop, "x", inputs, reference, "return x.topk(3).indices")
    assert verdict.accepted == accepted, verdict.error_log()


NEEDS_NUMBERS = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if x.device.type != "meta" and x.shape[1] < 700:
            raise ValueError("too few columns")
        return x.cumsum(1)


def get_inputs():
    return [torch.rand(4096, 700)]


def get_init_inputs():
    return []
"""


def test_what_is_refused_for_its_numbers_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes alone say that fewer columns are fine; a real run says that they are not."""
    monkeypatch.setattr(running, "LARGE_INPUTS", 0)
    plan = loaded(NEEDS_NUMBERS, "torch", 2).plan
    assert plan.reference.needs_numbers
    assert [tuple(case.inputs[0].shape) for case in plan.cases] == [(16, 700), (16, 700)]


@pytest.mark.parametrize(("columns", "known"), [(7, True), (6, False)])
def test_shapes_are_told_without_computing(columns: int, known: bool) -> None:
    source = ONE_LAYER.replace("COLUMNS", "7")
    reference = loaded(source, "torch", 2).plan.reference
    found = reference.shapes_without_computing([torch.rand(20_000, columns)], 1)
    assert found == ([torch.Size([20_000, 5])] if known else None)
    assert (
        reference.shapes_without_computing([torch.zeros(20_000, columns, dtype=torch.int64)], 1)
        is None
    )


ONE_LAYER = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(COLUMNS, 5)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.rand(2, COLUMNS)]


def get_init_inputs():
    return []
"""


MASKED = {
    "replaced": "s[:, torch.ones(6, 6).tril() == 0] = float('-inf'); return s.softmax(-1)",
    "filled": "return s.masked_fill(torch.ones(6, 6).tril() == 0, -1e9).softmax(-1)",
    "chosen": "return torch.where(torch.ones(6, 6).tril() == 1, s, float('-inf')).softmax(-1)",
}


@pytest.mark.parametrize("way", MASKED)
def test_a_mask_that_is_added_leaves_what_is_no_number(way: str) -> None:
    """Rows above the poisoned key do not see it; where its score is masked by adding, they are NaN all the same."""
    source = FORM.format(names="q, k", inputs="return [torch.ones(1, 6, 4), torch.ones(1, 6, 4)]",
                         answer=f"s = q @ k.transpose(1, 2); {MASKED[way]}")  # fmt: skip
    reference = running.Reference.load(source, "torch")
    inputs = reference.inputs(0)
    assert free_places(reference, inputs, 0, [torch.ones(1, 6, 6)], False) == []
    keys = running.as_tensor(inputs[1])
    assert keys is not None
    keys[0, 3, 0] = float("inf")
    found = running.as_tensor(reference.run(reference.model(0), inputs))
    assert found is not None
    answers = [found]
    assert torch.isfinite(answers[0][0, :3]).all()
    (free,) = free_places(reference, inputs, 0, answers, False)
    assert free[0].any(-1).tolist() == [True] * 3 + [False] * 3  # below it NaN stands anyway


OWN_SIZE_ONLY = "return torch.relu(x) if len(x) == 64 else torch.relu(x).cumsum(1)"


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize("own", [True, False])
def test_other_sizes_are_asked_unless_the_own_are_all_that_is_given(
    own: bool, workshop: Workshop
) -> None:
    source = FORM.format(
        names="x", inputs="return [torch.randn(64, 5)]", answer="return torch.relu(x)"
    )
    candidate = Candidate(CANDIDATE.format(names="x", answer=OWN_SIZE_ONLY), "torch")
    run = Run(
        Problem("small", source, "torch"),
        candidate,
        workshop,
        seeds=2,
        timeout_seconds=60,
        own_sizes=own,
    )
    result = families.check(run)
    run.close()
    assert result.status == ("passed" if own else "failed")
    assert "--sizes own" in (result.detail.en if own else result.remedy.en)
