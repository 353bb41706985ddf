"""The dry run refuses what eager torch refuses, and nothing else: a sample of the fuzz and of the cases."""

from __future__ import annotations

import pytest
import torch
from benchmarks.eager_cases import CASES

from tests.dryrun.conftest import Run
from torchstone.core.finding import Severity
from torchstone.dryrun.eager.forms import form_of
from torchstone.dryrun.eager.kernels import RandomState
from torchstone.dryrun.script.fakes.answers import Answers
from torchstone.dryrun.script.fakes.lazy import make_fake, make_mode
from torchstone.dryrun.session import Session
from torchstone.dryrun.settings import ScriptSettings

OPERATORS = ("addmm", "index_add", "nn.functional.nll_loss", "gather", "masked_select", "bucketize")
"""Dtypes, indices, targets, sizes that are values, ranks: one for each mechanism."""


def test_eager_and_dry_run_agree() -> None:
    from benchmarks.operator_fuzz import judge_apart  # torch's samples take seconds to import

    for operator in OPERATORS:
        verdicts, ended = judge_apart(operator)
        assert ended
        assert sum(bool(item.eager) for item in verdicts) > 10
        assert [item for item in verdicts if bool(item.eager) != bool(item.ours)] == []


ON_A_DEVICE = (
    "linear_of_two_dtypes", "ignore_index_left_out", "tokens_after_an_offset",
    "one_hot_of_too_few_classes", "unsorted_lengths", "second_backward_after_step",
)  # fmt: skip


@pytest.mark.parametrize("name", ON_A_DEVICE)
def test_a_wrong_call_is_refused_and_its_twin_is_not(name: str, run: Run) -> None:
    (case,) = (item for item in CASES if item.name == name)
    wrong = run(case.script(case.wrong), no_fixes=True, max_paths=1)
    assert [item.rule[:3] for item in wrong.findings] == ["DR1"]
    right = run(case.script(case.right), no_fixes=True, max_paths=1)
    assert (right.findings, right.gaps) == ((), ())


def test_a_form_is_tried_once_whatever_the_numbers_are() -> None:
    x = torch.zeros(3)
    func = torch.ops.aten.add.Tensor
    forms = {form_of(func, (x, x), {"alpha": rate}, [x, x]) for rate in (0.1, 0.01, 0.5)}
    assert len(forms) == 1
    assert form_of(func, (x, x), {"alpha": -0.1}, [x, x]) not in forms


def test_the_generator_of_the_program_is_left_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with RandomState().in_use():
        torch.rand(5)
    assert torch.equal(torch.rand(2), expected)


def test_values_follow_writes_through_views_and_end_where_a_fake_is_written() -> None:
    session = Session(ScriptSettings(cuda=False), make_mode())
    answers = Answers(session)
    weight = make_fake(session.mode, torch.ones(2, 3))
    ids = make_fake(session.mode, torch.zeros(2, 3, dtype=torch.int64))
    answers.known.keep(ids, torch.arange(6).reshape(2, 3))
    with answers:
        ids[1].add_(10)
        known = answers.known.value_of(ids[:, 0])
        ids[0].copy_(weight[0])
    assert known is not None
    assert known.tolist() == [0, 13]
    assert answers.known.value_of(ids) is None


def test_known_masks_choose_known_numbers_and_known_values_are_given_out(run: Run) -> None:
    report = run(
        "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n"
        "keys = torch.nn.Parameter(torch.randn(3, 4, 5))\n"
        "lengths = torch.tensor([2, 3, 0], device='cuda')\nmask = lengths > 0\n"
        "kept = torch.masked_select(keys.cuda(), mask.view(-1, 1, 1)).view(-1, 4, 5)\n"
        "assert kept.shape == (2, 4, 5)\n"
        "rows = lengths[mask].cpu().numpy()\nassert rows.tolist() == [2, 3]\n"
        "packed = pack_padded_sequence(kept, rows, batch_first=True, enforce_sorted=False)\n"
        "last = torch.arange(4, device='cuda').repeat(2, 1) == (lengths[mask].view(-1, 1) - 1)\n"
        "(packed.data.sum() + kept[last].sum()).backward()\n"
    )
    assert (report.findings, report.gaps) == ((), ())


def test_a_call_that_rests_on_an_assumed_size_is_not_certain(run: Run) -> None:
    report = run(
        "import torch\nx = torch.nn.Parameter(torch.randn(4, 5))\n"
        "chosen = torch.masked_select(x, x > 0)[: 12]\nprint(chosen.view(3, 4))\n"
    )
    assert [str(item.severity) for item in report.findings] == [str(Severity.MEDIUM)]
    assert "masked_select" in report.findings[0].why.say("en")


def test_a_kernel_that_believes_a_size_is_not_tried_on_less(run: Run) -> None:
    found = run(
        "import torch\n"
        "model = torch.nn.LSTM(16, 32)\n"  # the CPU's own kernel takes the hidden size as a number
        "out, _ = model(torch.randn(64, 7, 16))\n"
        "out.sum().backward()\n",
        no_fixes=True, max_paths=1,
    )  # fmt: skip
    assert (found.findings, found.gaps) == ((), ())
