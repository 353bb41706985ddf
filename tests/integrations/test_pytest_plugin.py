"""The pytest plugin in a pytest of its own."""

from __future__ import annotations

import pytest

# Loaded here, because pytester unloads what its runs load, and torch cannot be loaded twice.
import torchstone.cost.real_step
import torchstone.watch.monitor  # noqa: F401
from torchstone.core.errors import UsageError
from torchstone.integrations.pytest_plugin import quantity

pytest_plugins = ["pytester"]
MODEL = """
import pytest
import torch

@pytest.fixture
def model():
    return torch.nn.Linear(256, 256, bias=False)
"""


def run(pytester: pytest.Pytester, body: str) -> pytest.RunResult:
    pytester.makepyfile(MODEL + body)
    return pytester.runpytest_inprocess("-p", "no:xdist", "-p", "no:randomly", "-W", "ignore")


def test_limits_pass_and_fail(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.torchstone(max_flops="1.1 MFLOP", max_peak_memory="1 MiB")
def test_small(model):
    model(torch.zeros(8, 256))

@pytest.mark.torchstone(max_flops="1 MFLOP")
def test_many(model):
    model(torch.zeros(8, 256))

@pytest.mark.torchstone(max_peak_memory="200 KiB")
def test_large(model):
    model(torch.zeros(8, 256))

@pytest.mark.torchstone(max_flops="3 MFLOP")
def test_backward(model):
    model(torch.zeros(8, 256)).sum().backward()

def test_unmarked(model):
    model(torch.zeros(8, 256))
""",
    )
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*max_flops: 1.049 MFLOP counted, 1 MFLOP allowed*"])
    result.stdout.fnmatch_lines(["*max_peak_memory: 2?? KiB counted, 200 KiB allowed*"])


def test_a_wrong_marker_is_told(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.torchstone(max_flop="1 MFLOP")
def test_small(model):
    model(torch.zeros(8, 256))
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*got 'max_flop', expected one of max_flops*"])


def test_a_failing_test_fails_as_itself(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.torchstone(max_flops="1 FLOP")
def test_small(model):
    model(torch.zeros(8, 256))
    assert 1 == 2
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])
    result.stdout.no_fnmatch_line("*max_flops*counted*")


def test_a_watch_fails_a_test_that_diverges(pytester: pytest.Pytester) -> None:
    body = """
def train(watch, model, poison):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    w = watch(model, optimizer)
    for step in range(12):
        loss = model(torch.randn(8, 256)).square().mean()
        if step == poison:
            loss = loss * float("nan")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        w.step(loss)

def test_healthy(watch, model):
    train(watch, model, -1)

def test_diverges(watch, model):
    train(watch, model, 8)
"""
    result = run(pytester, body)
    # the watch speaks at the end of a test, so that what the test itself says comes first
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*torchstone watch: *ALERT*"])


def test_quantities() -> None:
    assert quantity("2 GFLOP", "x") == 2e9
    assert quantity("1 GiB", "x") == 2**30
    assert quantity("1.5k", "x") == 1500
    assert quantity(3, "x") == 3
    with pytest.raises(UsageError, match="2 GFLOP"):
        quantity("many", "x")
