"""Findings and checks that somebody else wrote: when they count, and when a change is proven by them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from torchstone.checks import compare
from torchstone.conductor.changes.hunks import (
    add_decorator,
    has_meaning,
    parts_of,
    remove_bodies,
    without,
)
from torchstone.conductor.changes.patches import FileChange
from torchstone.conductor.choices import TextEdit
from torchstone.conductor.experiments.checks.check import make_check
from torchstone.conductor.experiments.checks.reading import read_checks
from torchstone.conductor.experiments.checks.running import run_seeds
from torchstone.conductor.experiments.results import Result, combine
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.phases.guide import Entry, Guide, without_split_off
from torchstone.conductor.phases.verdicts import Verdict, Verification
from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.steps import Steps
from torchstone.conductor.trials import Variant, observe_run, run_relations, try_patch
from torchstone.core.errors import TorchstoneError
from torchstone.core.fix import Edit
from torchstone.core.text import Text
from torchstone.sandbox.run import is_confined

METRICS = '''"""Figures of an evaluation."""

import torch


def masked_mean(x, mask):
    """Mean over the positions that count."""
    return (x * mask).sum() / x.numel()


def step_loss(x, mask):
    return masked_mean(x, mask)


def unused(x):
    return x
'''
CHECK = """import torch
from metrics import step_loss


def test_mean_ignores_masked_positions():
    x, mask = torch.rand(10), torch.zeros(10)
    mask[:4] = 1
    assert abs(float(step_loss(x, mask) - x[:4].mean())) < 1e-6
"""
RIGHT = TextEdit("metrics.py", "/ x.numel()", "/ mask.sum()")
WEAK = """import torch
from metrics import step_loss


def test_mean_is_not_too_small():
    assert float(step_loss(torch.ones(4), torch.tensor([1.0, 0, 0, 0]))) > 0.3
"""
SCRIPT = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--mode", choices=["train", "eval"], default="train")
print(parser.parse_args().mode == "eval" and "4 files read")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "metrics.py").write_text(METRICS)
    return root


def check_of(project: Path, code: str, line: int = 8) -> Result:
    check = make_check("metrics.py", line, "divides by all", "HIGH", code, "agent", project)
    return combine(run_seeds(check, project, (0,)))


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        (CHECK, "broken", ""),
        ("def test_it():\n    assert 1\n", "holds", ""),
        ("from metrics import gone\ndef test_it():\n    gone()\n", "not decided", "loaded: ImportError"),
        ("def test_it():\n    nothing\n", "not decided", "NameError"),
        ("import metrics\ndef test_it():\n    metrics.masked_mean(1, 2)\n", "broken", "AttributeError"),
        ("import torch\ndef test_it():\n    torch.zeros(2).cuda()\n", "not decided", "lacks"),
        ("def test_it():\n    assert 'numel' in open('metrics.py').read()\n", "not decided", "reads"),
        ("import pytest\ndef test_it():\n    pytest.skip('no')\n", "not decided", "no"),
        ("import torch\ndef test_it():\n    assert torch.rand(()) < 2\ndef check_two():\n    assert 0\n",
         "broken", ""),
    ],
)  # fmt: skip
def test_what_a_check_says(project: Path, code: str, state: str, said: str) -> None:
    result = check_of(project, code)
    assert (result.state, said in result.said) == (state, True), result


def test_seeds_must_agree() -> None:
    holds, broken = Result("holds"), Result("broken", "1 != 2")
    assert combine([broken, broken]).state == "broken"
    assert combine([broken, holds]).state == "not decided"
    assert combine([holds, Result("not decided", "late")]).said == "late"
    assert combine([]).state == "not decided"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import inspect\ndef test_it(): pass\n", "inspect"),
        ("from unittest import mock\ndef test_it(): pass\n", "mock"),
        ("def test_it(monkeypatch): pass\n", "monkeypatch"),
        ("import metrics\ndef test_it():\n    metrics.masked_mean = None\n", "replace"),
        ("from metrics import unused\ndef test_it():\n    unused.__code__\n", "__code__"),
        ("def it(): pass\n", "test or check"),
        ("def test_it(:\n", "parse"),
        ("x" * 30_000, "characters"),
    ],
)
def test_a_check_that_cannot_count_is_refused(project: Path, code: str, why: str) -> None:
    with pytest.raises(TorchstoneError, match=why):
        make_check("metrics.py", 8, "claim", "HIGH", code, "agent", project)


@pytest.mark.parametrize(
    ("path", "line", "claim", "severity"),
    [("../x.py", 1, "c", "HIGH"), ("none.py", 1, "c", "HIGH"), ("metrics.py", 999, "c", "HIGH"),
     ("metrics.py", 1, " ", "HIGH"), ("metrics.py", 1, "c", "TERRIBLE"), ("/etc/passwd", 1, "c", "LOW")],
)  # fmt: skip
def test_a_finding_names_a_line_of_the_project(
    project: Path, path: str, line: int, claim: str, severity: str
) -> None:
    with pytest.raises(TorchstoneError):
        make_check(path, line, claim, severity, "", "agent", project)


def test_checks_of_a_folder(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checks"
    folder.mkdir()
    (folder / "mean.py").write_text(f'"""the mean is wrong\n\nplace: metrics.py:8\n"""\n{CHECK}')
    (check,) = read_checks(str(folder), project)
    assert (check.path, check.line, check.claim, check.by) == ("metrics.py", 8, "the mean is wrong", "person")  # fmt: skip
    (folder / "bad.py").write_text("def test_it(): pass\n")
    with pytest.raises(TorchstoneError, match="bad"):
        read_checks(str(folder), project)


def test_parts_of_a_change() -> None:
    before = "a = 1\nb = 2\nc = 3\n"
    changes = (FileChange("x.py", before, "a = 9\nb = 2\nc = 3  # why\n"),)
    first, second = parts_of(changes)
    assert without(changes, first) == (FileChange("x.py", before, "a = 1\nb = 2\nc = 3  # why\n"),)
    assert has_meaning(changes, first)
    assert not has_meaning(changes, second)
    one = (FileChange("x.py", before, "a = 9\nb = 2\nc = 3\n"),)
    assert without(one, parts_of(one)[0]) == ()
    moves = (FileChange("x.py", "a()\nb()\nc()\n", "b()\nc()\na()\n"),)
    (part,) = parts_of(moves)  # what is taken out here and put in there is one part
    assert without(moves, part) == ()


def test_the_guide_shows_what_is_proven_of_a_change(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("a = 1\nb = 2\n")
    said = Text("", "")
    entry = Entry("p-1", said, said, said, (), said, (), (), said, "01.patch", "both parts")
    kept = (Edit("x.py", 1, 0, 2, 0, "a = 9\n"),)
    done = Verification((Verdict("p-1", "s-1", "fixed", "proven", kept=kept),))
    (made,) = without_split_off(Guide((entry,), ()), done, tmp_path).entries
    assert "+a = 9" in made.diff
    assert len(made.hunks) == 1
    assert without_split_off(Guide((entry,), ()), Verification(()), tmp_path).entries == (entry,)


def test_the_innermost_function_loses_its_body() -> None:
    text = "def f():\n    def g():\n        return 1\n    return g\n\n\ndef h(): return 2\n"
    made = remove_bodies(text, {3})
    assert "raise RuntimeError" in made
    assert "return g" in made
    assert remove_bodies(text, {7}) == text


@pytest.mark.skipif(not is_confined(), reason="this system has no sandbox")
def test_a_run_that_does_not_train_says_why(project: Path) -> None:
    (project / "train.py").write_text(SCRIPT)
    report = observe_run(project, Variant("train.py", ("--mode", "tran")))
    (gap,) = report.gaps
    assert "invalid choice: 'tran'" in gap.reason.say("en")
    (gap,) = observe_run(project, Variant("train.py", ("--mode", "eval"))).gaps
    assert "made no optimizer step; it printed last: 4 files read" in gap.reason.say("en")
    done = run_relations(project, Variant("train.py", ("--mode", "eval")), ranks=False)
    assert "no relation of training could be asked" in done.said


def test_a_decorator_is_added_below_the_others() -> None:
    text = "class A:\n    @staticmethod\n    def f(x):\n        return x\n\n\ndef g(): return 2\n"
    made = add_decorator(text, {4, 7}, "constant(0)")
    assert "    @staticmethod\n    @constant(0)\n    def f(x):" in made
    assert "\n@constant(0)\ndef g(): return 2" in made


@pytest.mark.skipif(not is_confined(), reason="this system has no sandbox")
@pytest.mark.parametrize(
    ("code", "new", "why"),
    [(CHECK, "/ mask.sum()", ""), (WEAK, "/ 2", "answer 1 everywhere")],
)
def test_a_check_that_a_constant_passes_proves_nothing(
    project: Path, code: str, new: str, why: str
) -> None:
    check = make_check("metrics.py", 8, "divides by all", "HIGH", code, "agent", project)
    done = try_patch(project, check, [TextEdit("metrics.py", "/ x.numel()", new)])
    assert done.after is not None
    assert done.after.state == "holds"
    assert why in done.refused
    assert bool(done.refused) == bool(why)


@pytest.mark.skipif(not is_confined(), reason="this system has no sandbox")
def test_a_finding_of_an_agent_is_shown_fixed_and_proven(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    steps = Steps(RunFolder(out))
    steps.plan(
        project, ReviewOptions(path=str(project), depth="quick", tools=("lint",), no_cache=True)
    )
    claim = steps.submit_finding("metrics.py", 13, "somebody should look", "HIGH", "")
    assert (claim.state, claim.problem != "") == ("broken", True)
    shown = steps.submit_finding("metrics.py", 8, "the mean counts masked positions", "HIGH", CHECK)
    assert shown.state == "broken"
    kinds = {item.id: (item.evidence, item.severity) for item in steps.problems().problems}
    assert kinds[shown.problem] == ("shown", "HIGH")
    assert kinds[claim.problem] == ("suggested", "MEDIUM")  # a claim alone is never HIGH
    with pytest.raises(TorchstoneError, match="p-nothing"):
        steps.submit("p-nothing", [RIGHT], "?")

    def outcome(*edits: TextEdit) -> tuple[str, str, str, str]:
        done = steps.submit(shown.problem, edits, "a fix")
        assert done.applies, done
        verdict = steps.verify().of(shown.problem)
        assert verdict is not None
        assert verdict.solution == done.solution
        return verdict.outcome, verdict.state, verdict.check.en, verdict.diff

    extra = TextEdit("metrics.py", "    return x\n", "    return -x\n")
    *state, check, diff = outcome(RIGHT, extra)
    assert state == ["fixed", "proven"]
    assert "split off, because nothing proves it: metrics.py" in check  # the second part
    assert "-x" not in diff
    assert "-x" not in (out / "patches/proven.patch").read_text()
    assert outcome(RIGHT)[:2] == ("fixed", "proven")
    assert len(steps.propose().of(shown.problem)) > 2  # every submission is a candidate


TRAIN = """import argparse

import torch
import torch.distributed as dist
from metrics import masked_mean
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--ranks", action="store_true")
ranks = parser.parse_args().ranks
if ranks:
    dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(32, 4, generator=torch.Generator().manual_seed(1))
data = torch.utils.data.TensorDataset(x, torch.ones(32, 1))
sampler = torch.utils.data.DistributedSampler(data, shuffle=False) if ranks else None
for rows, mask in torch.utils.data.DataLoader(data, 4, sampler=sampler):
    optimizer.zero_grad()
    masked_mean(net(rows).square(), mask).backward()
    if ranks:
        dist.all_reduce(net.weight.grad)
        dist.all_reduce(net.bias.grad)
    optimizer.step()
"""
ASKED = """import torch
from torchstone.checks import compare, join_ranks, record, run, run_ranks


def test_runs():
    one = run("train.py", steps=3)
    compare(one, run("train.py", steps=3))
    assert len(one.losses) == len(one.rates) == 3 and one.rates[0] == (0.1,)
    assert set(one.gradients[0]) == {"Linear.weight", "Linear.bias"}
    assert "masked_mean" in one.returned


def test_calls():
    call = record("train.py", "masked_mean")[0]
    assert float(call.result) == float(call.arguments["x"].mean())
"""
ON_RANKS = """from torchstone.checks import compare, join_ranks, run_ranks


def test_ranks_agree_with_one_process():
    ranks = run_ranks(2, "train.py", "--ranks")
    compare(ranks[0].gradients, join_ranks(ranks).gradients)
"""


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        (ASKED, "holds", ""),
        (
            ON_RANKS,
            "broken",
            "[0].Linear.weight: differ by 0.5 of their norm",
        ),
        (
            "from torchstone.checks import *\ndef test_it():\n    run('train.py', '--lr', '1')\n",
            "not decided",
            "train.py made no optimizer step: exit 2; it printed last: usage",
        ),
        (
            "from torchstone.checks import *\ndef test_it():\n    record('train.py', 'gone')\n",
            "not decided",
            "gone was not called while train.py ran",
        ),
    ],
)
def test_a_check_runs_programs(project: Path, code: str, state: str, said: str) -> None:
    (project / "train.py").write_text(TRAIN)
    result = check_of(project, code)
    assert (result.state, said in result.said) == (state, True), result


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (1.0, 1.0 + 1e-6, ""),
        (float("nan"), float("nan"), ""),
        ([1, 2], [1, 2, 3], "2 and 3 of them"),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]}, "a[1]: 2 and 2.5"),
        ({"a": 1}, {"b": 1}, "only one of the two has a, b"),
        (torch.ones(4), torch.ones(2, 2), "shapes (4,) and (2, 2)"),
        (torch.ones(2), torch.tensor([1.0, torch.inf]), "not finite in one of the two"),
        (torch.ones(2), torch.ones(2) * 1.01, "differ by 0.0099 of their norm"),
        (torch.ones(2), torch.ones(2) * (1 + 1e-6), ""),
        (torch.zeros(2), torch.zeros(2), ""),
    ],
)
def test_what_compare_says(one: object, other: object, said: str) -> None:
    with pytest.raises(AssertionError) if said else nullcontext() as error:
        compare(one, other)
    assert not said or str(error.value) == said
