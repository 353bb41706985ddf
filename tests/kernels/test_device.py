"""Kernels are compiled for a device without one, and judged on the device that is here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchstone.core.evidence import Number
from torchstone.kernels import Candidate, load_problem, verify
from torchstone.kernels.candidate import Implementation
from torchstone.kernels.device import compiling as device_compile
from torchstone.kernels.device.assembling import Assembler, DeviceSession, assembler
from torchstone.kernels.device.compiling import Compiled, Target, compiled
from torchstone.kernels.device.on_gpu import OnDevice, found_device, run_on
from torchstone.kernels.gates import device as gate
from torchstone.kernels.messages.to_referee import Done
from torchstone.kernels.problem import problem_from_source
from torchstone.kernels.sessions.first_session import _Course
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import SessionError, Workshop, clean_environment

TRITON = """import numpy
import torch
import triton
import triton.language as tl
{before}

@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    {body}
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            relu[(triton.cdiv(x.numel(), {block}),)](x, y, x.numel(), BLOCK={block})
        return y
"""
TORCH = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {{}}

    def forward(self, x):
        {body}
"""
MATMUL = """import torch
import triton
import triton.language as tl


{decorator}
@triton.jit
def product(a, b, c, M, N, K, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE):
        k = start + tl.arange(0, TILE)
        left = tl.load(a + rows[:, None] * K + k, mask=(rows[:, None] < M) & (k < K), other=0.0)
        right = tl.load(b + k[:, None] * N + columns, mask=(k[:, None] < K) & (columns < N),
                        other=0.0)
        total += tl.dot(left, right{precision})
    tl.store(c + rows[:, None] * N + columns, total, mask=(rows[:, None] < M) & (columns < N))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty((m, n), dtype=a.dtype)
        if c.numel():
            tile = lambda meta: (triton.cdiv(m, meta["TILE"]), triton.cdiv(n, meta["TILE"]))
            product[tile](a, b, c, m, n, k{tile})
        return c
"""
PRODUCT = """import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(20, 18), torch.randn(18, 17)]


def get_init_inputs():
    return []
"""
LINEAR = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(outputs, width))
        self.bias = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        y = torch.nn.functional.linear(x, self.weight, self.bias)
        return torch.nn.functional.gelu(y, approximate="tanh")
"""
Made = Callable[..., Run]


pytestmark = pytest.mark.usefixtures("few_sizes")


@pytest.fixture
def made(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """A run whatever the policy would say of it; the earlier calls are made as always."""
    runs: list[Run] = []

    def make(source: str, implementation: Implementation = "triton", problem: str = "relu") -> Run:
        candidate = Candidate(source, implementation)
        known = problem_from_source(PRODUCT, "product") if problem == "product" else None
        run = Run(known or load_problem(problem), candidate, workshop, seeds=2, timeout_seconds=60)
        runs.append(run)
        with monkeypatch.context() as patch:
            if implementation == "triton":  # the problem's own sizes are enough for a compiler
                patch.setattr(_Course, "_families", lambda _: None)
                patch.setattr(_Course, "_repetitions", lambda _: None)
            assert run.main.own
        return run

    yield make
    for run in runs:
        run.close()


def triton(body: str = "pass", block: str = "256", before: str = "") -> str:
    return TRITON.format(body=body, block=block, before=before)


def only(result: Compiled) -> str:
    assert len(result.refused) == 1, result
    return result.refused[0].text


def test_a_kernel_compiles_and_says_what_it_needs(made: Made) -> None:
    result = compiled(made(triton()))
    assert not result.refused
    assert not result.gap
    kernel = result.made[0]
    assert kernel.kernel == "relu"
    assert "x: *float32" in kernel.types
    assert "BLOCK: 256" in kernel.types
    assert kernel.registers
    assert kernel.registers > 4
    assert kernel.spilled_bytes == 0
    assert kernel.seconds > 0


def test_python_of_the_interpreter_does_not_compile(made: Made) -> None:
    body = "value.handle.data = numpy.maximum(value.handle.data, 0)"
    result = compiled(made(triton(body)))
    assert "maximum" in only(result) or "handle" in only(result)
    assert result.refused[0].line


def test_a_block_that_is_no_power_of_two_does_not_compile(made: Made) -> None:
    result = compiled(made(triton(block="96")))
    assert "power of 2" in only(result)
    assert result.refused[0].line == 9


def test_a_kernel_that_exists_under_the_interpreter_only_is_found(made: Made) -> None:
    before = 'jit = triton.jit if type(tl.sum).__name__ != "JITFunction" else lambda made: made\n'
    result = compiled(made(triton(before=before).replace("@triton.jit", "@jit")))
    assert "does not exist without it" in only(result)


def test_a_constant_that_asks_for_the_interpreter_is_found(made: Made) -> None:
    before = "SEEN = tl.constexpr(bool(triton.knobs.runtime.interpret))\nWIDTH = 256\n"
    result = compiled(made(triton("value = value if SEEN else -value", before=before)))
    assert only(result) == "`SEEN` is True under the interpreter and False without it"


def test_what_fails_without_the_interpreter_fails_the_gate(made: Made) -> None:
    before = (
        'import subprocess\n\nif type(tl.sum).__name__ == "JITFunction":\n'
        '    subprocess.run(["/bin/true"])\n'
    )
    result = compiled(made(triton(before=before)))
    assert not result.gap
    assert result.refused[0].kind in ("PermissionError", "BlockingIOError")  # no program starts


def test_a_kernel_made_while_it_is_called_is_compiled(made: Made) -> None:
    source = triton()
    start, end = source.index("@triton.jit"), source.index("class ModelNew")
    kernel = "".join(f"        {line}\n" for line in source[start:end].strip().splitlines())
    head = "    def forward(self, x):\n"
    moved = source[:start] + source[end:].replace(head, head + kernel)
    result = compiled(made(moved))
    assert not result.refused
    assert [item.kernel for item in result.made] == ["relu"]


def test_too_much_shared_memory_is_refused(made: Made) -> None:
    run = made(MATMUL.format(decorator="", precision="", tile=", TILE=16"), problem="product")
    need = compiled(run).made[0].shared_bytes
    assert need > 1000
    said = only(compiled(run, Target(shared_bytes=need - 1)))
    assert said.startswith("out of resource: shared memory")


def test_a_tuned_kernel_needs_one_configuration_that_fits(made: Made) -> None:
    configs = "[triton.Config({'TILE': 32}), triton.Config({'TILE': 16})]"
    decorator = f"@triton.autotune(configs={configs}, key=['M'])"
    run = made(MATMUL.format(decorator=decorator, precision="", tile=""), problem="product")
    result = compiled(run, Target(shared_bytes=10_000))
    assert not result.refused
    assert 0 < result.made[0].shared_bytes < 10_000
    assert compiled(run, Target(shared_bytes=64)).refused


@pytest.mark.parametrize(
    ("precision", "rounded"), [("", True), (', input_precision="ieee"', False)]
)
def test_reduced_precision_of_a_device_is_told(made: Made, precision: str, rounded: bool) -> None:
    source = MATMUL.format(decorator="", precision=precision, tile=", TILE=16")
    result = compiled(made(source, problem="product"))
    assert result.made[0].tf32 is rounded
    assert any("TF32" in item.en for item in gate._notes(result)) is rounded


def test_no_assembler_is_a_gap_that_rejects_nobody(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_compile, "assembler", lambda _: "no ptxas for this machine")
    found = gate.check(made(triton()))
    assert found.status == "gap"
    assert "no ptxas for this machine" in found.detail.en
    assert found.close
    assert not gate.GATE.stops  # only a gap in a gate that stops rejects


def test_assembly_that_is_none_gives_words_and_no_code(workshop: Workshop) -> None:
    tool = assembler(80)
    assert isinstance(tool, Assembler)
    code, said = tool.assemble(workshop, b"no assembly", 80, True, 30)
    assert not code
    assert "fatal" in said or "error" in said


def test_a_session_that_asks_in_another_way_is_ended(workshop: Workshop) -> None:
    tool = assembler(80)
    assert isinstance(tool, Assembler)
    session = DeviceSession.of(workshop.open("triton_device"), tool)
    with pytest.raises(
        SessionError
    ):  # no compiler is open, and what it is asked is none of its questions
        session.ask(Done(), Done, seconds=30)
    session.end(late=True)


# on a device, of which the host is one


def on_host(run: Run) -> OnDevice:
    return run_on(run, "cpu", run.workshop)


def test_a_right_kernel_is_right_on_a_device_and_timed_there(made: Made) -> None:
    run = made(TORCH.format(body="return torch.clamp(x, min=0)"), "torch")
    ran = on_host(run)
    assert not ran.nothing
    assert not ran.wrong
    assert not ran.changed(run.facts.writes_inputs)
    assert len(ran.calls) > run.seeds + 4
    assert {"own", "strided", "nan", "swapped"} <= {call.family for call in ran.calls}
    assert len(ran.ours_s) == len(ran.theirs_s) == 9
    assert all(value > 0 for value in ran.ours_s + ran.theirs_s)
    names = [item.name for item in gate._times(ran) if isinstance(item, Number)]
    assert [getattr(item, "en", "") for item in names] == ["candidate", "reference", "speed-up"]


def test_triton_and_weights_and_arrays_go_there_too(made: Made) -> None:
    run = made(triton())
    assert not on_host(run).wrong
    assert not on_host(made(LINEAR, "torch", "linear_gelu")).wrong
    numpy = "class ModelNew:\n    def __call__(self, x):\n        return x.sum(axis=-1)\n"
    assert not on_host(made(numpy, "numpy", "row_sum")).wrong


@pytest.mark.parametrize(
    ("body", "family"),
    [
        ("return torch.clamp(x, min=0) + 1e-3", "own"),
        ("return torch.clamp(torch.nan_to_num(x), min=0)", "nan"),
        ("return self.kept.setdefault(x.data_ptr(), torch.relu(x).clone())", "swapped"),
        ('return torch.relu(x).to("meta")', "own"),
    ],
)
def test_a_wrong_kernel_is_wrong_on_a_device(made: Made, body: str, family: str) -> None:
    run = made(TORCH.format(body="return torch.relu(x)"), "torch")
    assert run.main.swapped is not None
    run.candidate = Candidate(TORCH.format(body=body), "torch")  # right before, wrong there
    ran = on_host(run)
    assert family in {call.family for call in ran.wrong}
    result = gate._wrong_there(run, ran)
    assert result is not None
    assert result.status == "failed"
    assert result.detail.en.startswith("on cpu, ")
    assert not ran.ours_s


def test_an_input_that_is_changed_there_is_seen(made: Made) -> None:
    run = made(TORCH.format(body="return torch.relu(x)"), "torch")
    run.candidate = Candidate(TORCH.format(body="return x.clamp_(min=0).clone()"), "torch")
    result = gate._wrong_there(run, on_host(run))
    assert result is not None
    assert "input 0 was changed" in result.detail.en


def test_what_does_not_load_or_live_there_is_told(made: Made) -> None:
    run = made(TORCH.format(body="return torch.relu(x)"), "torch")
    run.candidate = Candidate("import nothing_of_this_name", "torch")
    result = gate._wrong_there(run, on_host(run))
    assert result is not None
    assert "ModuleNotFoundError" in result.detail.en


def test_the_whole_gate_with_a_device(monkeypatch: pytest.MonkeyPatch, workshop: Workshop) -> None:
    monkeypatch.setattr(gate, "found_device", lambda: "cpu")
    candidate = Candidate(gate.GATE.good["triton"], "triton")
    verdict = verify(load_problem("relu"), candidate, seeds=2, workshop=workshop)
    found = next(item for item in verdict.results if item.gate == "device")
    assert verdict.accepted
    assert "right on cpu in" in found.detail.en
    names = {item.name for item in verdict.report().measures}
    assert {"device_compile", "device_candidate", "device_speed_up"} <= names


@pytest.mark.skipif(bool(found_device()), reason="there is a GPU here")
def test_without_a_device_that_is_said_and_nothing_else(made: Made) -> None:
    found = gate.check(made(triton()))
    assert found.status == "passed"
    assert "nothing was run on a device" in found.detail.en
    assert "GPU" in found.detail.zh


@pytest.mark.skipif(bool(found_device()), reason="there is a GPU here")
def test_a_workshop_for_a_gpu_says_why_there_is_none(made: Made) -> None:
    run = made(TORCH.format(body="return torch.relu(x)"), "torch")
    with Workshop(("numpy", "torch"), device="cuda") as workshop:
        ran = run_on(run, "cuda", workshop)
    assert ran.nothing == "torch sees no cuda device"
    assert not ran.calls


def test_judging_loads_no_torch() -> None:
    code = "import sys, torchstone.kernels.gates.device; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_environment_of_a_device_has_no_interpreter() -> None:
    here, there = clean_environment(Path("/x")), clean_environment(Path("/x"), "cuda")
    assert here["TRITON_INTERPRET"] == "1"
    assert here["CUDA_VISIBLE_DEVICES"] == ""
    assert here == clean_environment(Path("/x"), "cpu")
    assert not {"TRITON_INTERPRET", "CUDA_VISIBLE_DEVICES", "NUMBA_ENABLE_CUDASIM"} & set(there)
