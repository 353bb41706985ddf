"""Who failed: what a dry run itself brings about is never said of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.dryrun.conftest import Run
from torchstone.core.finding import Severity
from torchstone.dryrun.script.fakes import conversions

STEP = """
import copy, io, pickle, torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(loss):
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def steps(report: object) -> float:
    return next(item.value for item in report.measures if item.name == "optimizer_steps")  # type: ignore[attr-defined, no-any-return]


def test_our_own_code_is_not_the_program(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversions, "_described", None)
    report = run(STEP + "repr(model.weight)\n")
    assert not report.findings
    (gap,) = report.gaps
    assert gap.failed
    assert "dry run itself failed" in gap.reason.say("en")
    assert "空跑本身出错" in gap.reason.say("zh")
    assert "torchstone/dryrun/script/fakes/conversions.py" in gap.reason.say("en")


def test_a_failure_before_the_first_line_is_ours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchstone.dryrun.child.run_script", int)  # a call that cannot succeed
    report = run("print(1)\n")
    assert not report.findings
    assert "dry run itself failed" in report.gaps[0].reason.say("en")


@pytest.mark.parametrize(
    "line",
    [
        "{}['k']",
        "None.x",
        "assert False",
        "model.no_such_name",
        "open(3.5)",
        "torch.ones(2).view(3)",
    ],
)
def test_faults_of_the_program_stay_its_own(line: str, run: Run) -> None:
    report = run(STEP + line + "\n")
    assert not report.gaps
    assert [item.severity for item in report.findings] == [Severity.HIGH]


@pytest.mark.parametrize("device", ["cpu", "h100-80g"])
def test_distributions_check_values_that_are_not_there(device: str, run: Run) -> None:
    text = STEP + (
        "from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence\n"
        "out = model(torch.ones(3, 4))\n"
        "a, b = Normal(out, out.exp()), Categorical(logits=out)\n"
        "step(-a.log_prob(a.rsample()).sum() - b.log_prob(b.sample()).sum()\n"
        "     + kl_divergence(a, Normal(0.0, 1.0)).sum()\n"
        "     + Bernoulli(torch.sigmoid(model(torch.ones(3, 4)))).log_prob(torch.ones(3, 2)).sum())\n"
    )
    report = run(text, device=device)
    assert not report.findings
    assert not report.gaps
    assert steps(report) == 1


def test_an_unknown_value_of_the_program_is_named_and_weighs_less(run: Run) -> None:
    report = run(STEP + "if model(torch.ones(1, 4)).sum() > 3:\n    model(torch.ones(1, 5))\n")
    (found,) = report.findings
    assert found.severity is Severity.MEDIUM
    assert "bool(tensor) at train.py:7 is True" in found.why.say("en")


def test_a_program_that_guards_itself_against_a_value_is_not_accused(run: Run) -> None:
    report = run(
        STEP
        + "if torch.isnan(model(torch.ones(1, 4)).sum()):\n    raise ValueError('loss is nan')\n"
    )
    assert not report.findings


def test_fake_tensors_are_pickled(run: Run) -> None:
    text = STEP + (
        "weight = pickle.loads(pickle.dumps(model.weight))\n"
        "assert weight.shape == (2, 4) and weight.requires_grad, weight\n"
        "assert isinstance(weight, torch.nn.Parameter)\n"
        "state = pickle.loads(pickle.dumps(model.state_dict()))\n"
        "copy.deepcopy(model).load_state_dict(state)\n"
        "kept = pickle.loads(pickle.dumps((model(torch.ones(3, 4)).detach(), torch.ones(2))))\n"
        "assert kept[0].shape == (3, 2) and kept[1].tolist() == [1.0, 1.0]\n"
        "try:\n    pickle.dumps(lambda: 0)\nexcept (pickle.PicklingError, AttributeError):\n    pass\n"
        "pickle.dumps(lambda: 0)\n"
    )
    report = run(text)
    (found,) = report.findings
    assert found.line == 18


def test_the_number_of_the_processor_does_not_make_it_another_device(run: Run) -> None:
    text = STEP + (
        "model.to('cpu:0')\nassert str(model.weight.device) == 'cpu', model.weight.device\n"
        "step(model(torch.ones(3, 4)).sum())\n"
        "step(model(torch.ones(3, 4, device=torch.device('cpu', 0))).sum())\n"
    )
    report = run(text, device="cpu")
    assert not report.findings
    assert steps(report) == 2


FORK = """
import os, sys, time, torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
from torchstone.dryrun.harness import HarnessError, check_can_copy
from torchstone.dryrun.ranks.play import warm_up
from torchstone.observe.compat.autograd_engine import engine_threads, start_engine
from torchstone.dryrun.settings import ScriptSettings
def backward():
    torch.ones(1, requires_grad=True).sum().backward()
if sys.argv[1] == "ours":
    start_engine()
_setup_privateuseone_for_python_backend("pretend")
if sys.argv[1] == "ours":
    warm_up(ScriptSettings(script=sys.argv[2]))
else:
    backward()
    while not engine_threads():  # a thread names itself a moment after its start
        time.sleep(0.01)
try:
    check_can_copy()
except HarnessError:
    print("refused")
sys.stdout.flush()
child = os.fork()
if child == 0:
    try:
        backward()
    except RuntimeError as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(child, 0)
os._exit(0)
"""


@pytest.mark.parametrize("way", ["ours", "theirs"])
def test_copies_of_a_warm_process_have_autograd(way: str, tmp_path: Path) -> None:
    """A device that is known at the first backward is what a build for CUDA has."""
    (tmp_path / "fsdp.py").write_text("# fully_shard: fsdp\n")
    done = subprocess.run(
        [sys.executable, "-c", FORK, way, str(tmp_path / "fsdp.py")],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    if way == "ours":
        assert done.stdout == ""
    else:  # the fault is still there, and is noticed before a copy is made
        assert done.stdout.startswith("refused\nUnable to handle autograd's threading")


def test_ranks_exchange_objects_that_hold_fake_tensors(run: Run) -> None:
    text = (
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\nmodel = torch.nn.Linear(4, 2)\n"
        "bucket = [None] * dist.get_world_size()\n"
        "dist.all_gather_object(bucket, {'loss': model(torch.ones(3, 4)).sum(), 'rank': dist.get_rank()})\n"
        "assert [item['rank'] for item in bucket] == [0, 1]\n"
        "assert all(item['loss'].shape == () for item in bucket)\n"
    )
    report = run(text, world_size=2)
    assert not report.findings
    assert not report.gaps
